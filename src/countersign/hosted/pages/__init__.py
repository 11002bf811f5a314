"""The pages of checkout sessions."""
