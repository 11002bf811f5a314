"""Checkout sessions: one link by which a buyer initials a notice and proves who they are."""
