"""Whose rows an act touches, seen at the driver."""
