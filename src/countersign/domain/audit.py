"""What operators did or looked at, kept for good."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class AuditAction(StrEnum):
    """What was done."""

    VERIFICATION_SETTINGS_CHANGED = "verification_settings_changed"
    VERIFICATION_SETTINGS_REMOVED = "verification_settings_removed"
    BUYER_REVOKED = "buyer_revoked"
    BUYER_REINSTATED = "buyer_reinstated"
    BUYER_ZIP_ACCEPTED = "buyer_zip_accepted"
    EVIDENCE_SHOWN = "evidence_shown"
    CLEARANCE_SETTINGS_CHANGED = "clearance_settings_changed"
    CLEARANCE_KEY_ADDED = "clearance_key_added"
    CLEARANCE_KEY_WITHDRAWN = "clearance_key_withdrawn"


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act."""

    id: str
    at: datetime
    actor: str
    """Who, as far as the command line knows: the user of the operating system."""
    action: AuditAction
    subject: str
    """The account or buyer."""
    details: Mapping[str, object]
    """More of it; never a secret, and nothing personal."""
