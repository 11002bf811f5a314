"""What is left of services."""
