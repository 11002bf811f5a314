"""What test keys may do by hand: clock, faults, buyers, events."""
