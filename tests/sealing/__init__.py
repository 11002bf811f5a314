"""Sealing, proving, erasing: the log as operators, vendors and strangers meet it."""
