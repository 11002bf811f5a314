"""Manual acts of test keys: clock, faults, buyers, events."""
