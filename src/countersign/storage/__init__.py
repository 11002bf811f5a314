"""What is left of storage."""
