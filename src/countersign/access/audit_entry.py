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
    ACCOUNT_CREATED = "account_created"
    KEY_CREATED = "key_created"
    KEY_ROTATED = "key_rotated"
    KEY_REVOKED = "key_revoked"
    ACKNOWLEDGMENTS_EXPORTED = "acknowledgments_exported"
    BUNDLE_WRITTEN = "bundle_written"
    ERASED = "erased"
    HOLD_PLACED = "hold_placed"
    HOLD_RELEASED = "hold_released"
    NOTICE_PUBLISHED = "notice_published"
    NOTICE_REVIEWED = "notice_reviewed"
    NOTICE_WITHDRAWN = "notice_withdrawn"
    NOTICE_ENJOINED = "notice_enjoined"
    NOTICE_REINSTATED = "notice_reinstated"
    LOG_KEY_ROTATED = "log_key_rotated"
    LOG_EPOCH_BEGUN = "log_epoch_begun"
    LOG_RECOVERED = "log_recovered"
    WEBHOOK_ENDPOINT_CREATED = "webhook_endpoint_created"
    WEBHOOK_ENDPOINT_CHANGED = "webhook_endpoint_changed"
    WEBHOOK_ENDPOINT_DELETED = "webhook_endpoint_deleted"
    WEBHOOK_SECRET_ROTATED = "webhook_secret_rotated"  # noqa: S105 - the name of an act
    VAULT_REWRAPPED = "vault_rewrapped"
    VAULT_ROTATED = "vault_rotated"


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act."""

    id: str
    at: datetime
    actor: str
    """Who, as far as the command line knows: the user of the operating system."""
    action: AuditAction
    subject: str
    """The account, buyer, record, notice or webhook endpoint; or `log`, `vault`."""
    details: Mapping[str, object]
    """More of it; never a secret, and nothing personal."""
