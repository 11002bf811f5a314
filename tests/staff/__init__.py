"""Acts of staff over the API."""
