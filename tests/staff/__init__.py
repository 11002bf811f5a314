"""What staff do, over the API."""
