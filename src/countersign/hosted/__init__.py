"""The pages of buyers."""
