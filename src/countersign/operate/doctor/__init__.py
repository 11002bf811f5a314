"""Diagnose a deployment from outside: problems and remedies, without changing it."""
