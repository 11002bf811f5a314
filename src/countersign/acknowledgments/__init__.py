"""Acknowledgments: rules, SQL, acts, certificate, routes and commands."""
