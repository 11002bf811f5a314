"""Orders: what a vendor names by a session or a reference, and everything that belongs to it."""
