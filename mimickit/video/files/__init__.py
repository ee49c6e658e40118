"""What clips become on disk: names, encoders, writers."""
