"""Acknowledgments: rules, SQL, acts, routes and commands."""
