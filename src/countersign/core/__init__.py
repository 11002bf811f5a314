"""What the four endpoints need: notices, acknowledgments, buyers and clearances."""
