"""A module per noun: from a call to a service, and from its outcome to an answer."""
