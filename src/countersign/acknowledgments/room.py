"""The room of acknowledgments: what its acts work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from countersign.access.secrets import DeploymentSecret
from countersign.acknowledgments.certificate import Certificates
from countersign.acknowledgments.checkpoints import Checkpoints
from countersign.clock import Clock, Entropy
from countersign.config import Settings
from countersign.db.database import Database
from countersign.host import Network
from countersign.log.journal import Journal
from countersign.log.room import LogRoom
from countersign.notices.room import Notices
from countersign.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgments:
    """Acknowledgments: written, read back and proved."""

    notices: Notices
    log: LogRoom
    database: Database
    journal: Journal
    secret: DeploymentSecret
    vault: Vault
    clock: Clock
    entropy: Entropy
    certificates: Certificates
    checkpoints: Checkpoints
    verify_url: str
    client_ip_header: str
    trusted_proxies: Sequence[Network]
    bullet_digests: dict[str, msgspec.Raw] = field(default_factory=dict)
    """The `bullets` member of records, by the digest of the notice version."""


def open_acknowledgments(settings: Settings, notices: Notices) -> Acknowledgments:
    """The room over that of notices; `certificates` is to be closed."""
    log = notices.log
    return Acknowledgments(
        notices=notices,
        log=log,
        database=log.access.database,
        journal=log.journal,
        secret=log.access.secret,
        vault=log.vault.vault,
        clock=log.access.clock,
        entropy=log.access.entropy,
        certificates=Certificates(),
        checkpoints=Checkpoints(log),
        verify_url=f"{settings.public_url}/verify",
        client_ip_header=settings.client_ip_header,
        trusted_proxies=settings.trusted_proxies,
    )
