"""What the Newton engine is made of."""
