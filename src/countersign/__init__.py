"""Countersign: buyer verification and notice acknowledgment, self-hosted."""

__version__ = "0.1.0"
