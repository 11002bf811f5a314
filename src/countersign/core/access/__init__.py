"""Callers: accounts, keys, idempotency, the audit of operators' acts, test clocks."""
