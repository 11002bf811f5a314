"""Who may ask: accounts, keys, idempotency, the record of operators' acts, test clocks."""
