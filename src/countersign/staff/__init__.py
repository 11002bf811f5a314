"""People, and the operations of staff."""
