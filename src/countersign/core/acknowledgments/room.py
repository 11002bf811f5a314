"""The room of acknowledgments: what its acts work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from countersign.base.config import Settings
from countersign.base.host import Network
from countersign.base.values import Mode
from countersign.core.acknowledgments.certificates import Certificates
from countersign.core.acknowledgments.checkpoints import Checkpoints
from countersign.core.log.room import LogRoom
from countersign.core.notices.room import Notices
from countersign.core.parties.model import Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgments:
    """Acknowledgments: written, read back and proved."""

    notices: Notices
    log: LogRoom
    certificates: Certificates
    checkpoints: Checkpoints
    verify_url: str
    client_ip_header: str
    trusted_proxies: Sequence[Network]
    bullet_digests: dict[str, msgspec.Raw] = field(default_factory=dict)
    """The `bullets` member of records, by the digest of the notice version."""
    bound: dict[tuple[str, Mode], Bound] = field(default_factory=dict)
    """The descriptions bound by an account's last record; each transaction compares them with the
    database."""


def open_acknowledgments(settings: Settings, notices: Notices) -> Acknowledgments:
    """The room over that of notices; `certificates` is to be closed."""
    log = notices.log
    return Acknowledgments(
        notices=notices,
        log=log,
        certificates=Certificates(),
        checkpoints=Checkpoints(log),
        verify_url=f"{settings.public_url}/verify",
        client_ip_header=settings.client_ip_header,
        trusted_proxies=settings.trusted_proxies,
    )
