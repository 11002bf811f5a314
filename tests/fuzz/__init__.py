"""Parsers of bytes from outside, with any bytes: by search for hours, by replay in each run."""
