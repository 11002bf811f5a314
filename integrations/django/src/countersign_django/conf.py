"""The content of `settings.COUNTERSIGN`, and the client made from it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from countersign_client import Countersign, Retries

RETRIES: Final = Retries(attempts=2, waits_max=3.0)
"""A webhook has to be answered within 15 seconds; it is sent again anyway."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The members of `settings.COUNTERSIGN`, which are named in capitals there."""

    base_url: str = ""
    """The address of the server, such as https://countersign.example.com."""
    # Not in its representation: reports of errors show the variables of functions.
    api_key: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    """The `whsec_…` of the webhook endpoint, or its public key `whpk_…`."""
    timeout_seconds: float = 5.0
    """How long one attempt may take. A buyer or a webhook waits meanwhile."""
    component_integrity: str = ""
    """The hash of the component's file, `sha384-…`; empty: browsers do not compare it."""

    @property
    def is_test(self) -> bool:
        """Whether the key is a sandbox key, with which nothing counts."""
        return self.api_key.startswith(("csign_sk_test_", "csign_rk_test_"))


def configuration() -> Configuration:
    """The present settings. Raises ImproperlyConfigured if a name is unknown."""
    given = {name.lower(): value for name, value in getattr(settings, "COUNTERSIGN", {}).items()}
    if unknown := given.keys() - {one.name for one in fields(Configuration)}:
        names = ", ".join(sorted(name.upper() for name in unknown))
        raise ImproperlyConfigured(f"settings.COUNTERSIGN has an unknown member: {names}")
    return Configuration(**given)


def client() -> Countersign:
    """The client of these settings, shared by the threads of this process."""
    return _client(configuration())


@lru_cache(maxsize=4)
def _client(conf: Configuration) -> Countersign:
    try:
        return Countersign(
            api_key=conf.api_key,
            base_url=conf.base_url,
            timeout=conf.timeout_seconds,
            retries=RETRIES,
        )
    except ValueError as error:
        # Not `from error`: its report would show the key.
        raise ImproperlyConfigured(f"settings.COUNTERSIGN: {error}") from None
