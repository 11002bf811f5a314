"""The sandbox: test clocks, buyers put in a state, triggered events, planned faults."""
