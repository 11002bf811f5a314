"""One order, told alike everywhere."""
