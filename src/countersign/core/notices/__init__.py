"""Notices: files, registry, lifecycle, routes and commands."""
