"""Evidence formats: pure functions, bytes in and bytes out. No clock, no network, no database."""
