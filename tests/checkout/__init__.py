"""Checkout sessions: one link for one buyer and one order."""
