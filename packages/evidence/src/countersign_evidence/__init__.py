"""Countersign's evidence: its formats, verifying, and monitoring.

The modules of the formats are pure functions, bytes in and bytes out: no clock, no network, no
database.
"""

__version__ = "0.1.0"
