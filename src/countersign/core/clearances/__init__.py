"""Clearances: may this order ship? Rules, SQL, acts, tokens, routes and commands."""
