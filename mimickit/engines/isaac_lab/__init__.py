"""What the Isaac Lab engine is made of."""
