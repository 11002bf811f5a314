"""Dossiers: the evidence of one order in one file."""
