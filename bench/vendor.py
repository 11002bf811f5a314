"""A vendor and its submission, for benchmarks that call acts without HTTP."""

from __future__ import annotations

from typing import Final

from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.acknowledgments.model import Origin, Submission

_ORIGIN: Final = Origin(
    ip="203.0.113.7",
    ip_source=None,
    peer_ip="127.0.0.1",
    forwarded=None,
    forwarded_truncated=False,
    user_agent="Bench/1.0",
    user_agent_source=None,
    user_agent_truncated=False,
)


def vendor(account_id: str) -> Principal:
    """The holder of a secret key of this account in test mode."""
    return Principal(
        key_id="key",
        account_id=account_id,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )


def initials(lines: int, session_id: str | None = None, cbid: str | None = None) -> Submission:
    """Initials on so many lines of the version in force."""
    return Submission(
        initials_per_line=["JD"] * lines,
        session_id=session_id,
        cbid=cbid,
        notice_version=None,
        origin=_ORIGIN,
    )
