"""Checkout sessions: one link where a buyer initials a notice and proves their identity."""
