"""Buyers who are remembered by a passkey or a cookie, and pass without a new identity check."""
