"""What is written and drawn over a picture."""
