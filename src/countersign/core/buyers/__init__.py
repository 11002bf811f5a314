"""Buyers: states, decision, verification, operators' acts, routes and commands."""
