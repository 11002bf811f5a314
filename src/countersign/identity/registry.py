"""The identity providers: each is a module of this package, with a table of its words."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final, get_args, get_type_hints

import msgspec

from countersign.clock import Clock
from countersign.errors import InvalidArgument
from countersign.identity.base import Credentials, IdentityProvider
from countersign.identity.fingerprint import KeyedHash, fingerprints
from countersign.identity.transport import DIRECT, Reach

_CREDENTIALS_BYTES_MAX: Final = 64 * 1024
PROVIDER_NAMES: Final = tuple(
    sorted(
        file.name.removesuffix(".toml")
        for file in resources.files(__package__).iterdir()
        if file.name.endswith(".toml")
    )
)
"""Each has a module, a table of the provider's words, and a class named like the module."""


class IdentityProviders:
    """Makes identity providers from an account's credentials."""

    def __init__(self, keyed: KeyedHash, clock: Clock, reach: Reach = DIRECT) -> None:
        self._keyed = keyed
        self._clock = clock
        self._reach = reach

    def __call__(
        self, name: str, credentials: bytes, base_url: str | None
    ) -> IdentityProvider[Any]:
        """A provider, from the content of a credentials file (a JSON object).

        Raises:
            InvalidArgument: the provider is unknown, or the credentials cannot work.
        """
        adapter = _adapter(name)
        return adapter(
            _read(name, adapter.credentials_type, credentials),
            base_url=base_url,
            fingerprint=fingerprints(self._keyed, base_url),
            clock=self._clock,
            reach=self._reach,
        )

    def review(self, name: str, credentials: bytes, *, test: bool | None = False) -> Sequence[str]:
        """Warnings for an operator about these credentials, one sentence or more for each.

        `test` is whether they have to be for the provider's test mode; None: for either mode.

        Raises:
            InvalidArgument: they cannot work, or are for the other mode.
        """
        read = _read(name, _adapter(name).credentials_type, credentials)
        if test and not read.is_test:
            raise InvalidArgument(
                f"These are live credentials of {name}, and sessions of test keys go to the "
                "provider's own test mode. Give the credentials of its test mode."
            )
        if test is False and read.is_test:
            raise InvalidArgument(
                f"These credentials are for the test mode of {name}, whose sessions are refused "
                "for live keys. Give the live credentials."
            )
        if getattr(read, "webhook_secrets", True):
            return read.warnings
        hint = (
            f"the credentials contain no webhook_secrets: every message of {name} is refused, "
            "and undecided sessions are only polled, at longest every 3 hours."
        )
        return (*read.warnings, hint)


def _adapter(name: str) -> type[IdentityProvider[Any]]:
    if name not in PROVIDER_NAMES:
        msg = f"Unknown provider {name!r}. The providers are: {', '.join(PROVIDER_NAMES)}."
        raise InvalidArgument(msg)
    module = importlib.import_module(f"{__package__}.{name}")
    found: type[IdentityProvider[Any]] = getattr(module, name.title())
    return found


def _read(name: str, kind: type[Credentials], credentials: bytes) -> Credentials:
    if len(credentials) > _CREDENTIALS_BYTES_MAX:
        raise InvalidArgument("A credentials file can have at most 64 KiB.")
    try:
        read = msgspec.json.decode(credentials, type=kind)
        read.check()
    except msgspec.ValidationError as error:
        # The text names the member and what it should be; of a wrong word also the word.
        detail = str(error)
        if detail.startswith("Invalid enum value"):
            place = detail.partition(" - ")[2]
            member = get_type_hints(kind).get(place.removeprefix("at `$.").removesuffix("`"))
            words = " or ".join(f"`{word}`" for word in get_args(member)) or "another word"
            detail = f"Expected {words} - {place}"
        raise InvalidArgument(f"These are not credentials for {name}: {detail}") from None
    except msgspec.DecodeError:
        raise InvalidArgument("A credentials file must contain a JSON object.") from None
    except ValueError as error:
        raise InvalidArgument(f"These credentials cannot work: {error}") from None
    return read
