"""Drills: a real server, broken on purpose under load, and judged by one oracle. See `site`."""
