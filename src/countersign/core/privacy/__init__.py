"""Erasure, legal holds and retention."""
