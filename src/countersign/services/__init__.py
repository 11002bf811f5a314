"""A module per act: what the service does, told in terms of the domain and of ports."""
