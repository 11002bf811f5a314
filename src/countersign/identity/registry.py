"""The installed identity providers: those of the service, and those of other packages.

Each is an entry point, by its name, so that another provider is a package that changes nothing
here:

    [project.entry-points."countersign.identity_providers"]
    gatekeeper = "countersign_gatekeeper.adapter:Gatekeeper"

Nothing is imported before an account uses it, except by `refuse_unusable` when a server starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from inspect import isabstract
from typing import Any, Final, get_args, get_type_hints

import msgspec

from countersign.base.errors import IdentityProviderRefused, InvalidArgument
from countersign.base.values import Clock
from countersign.identity.base import Credentials, IdentityProvider
from countersign.identity.fingerprint import KeyedHash, fingerprints
from countersign.identity.transport import DIRECT, Outbound

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,19}", re.ASCII)
"""It stands in addresses, metrics and columns."""
_TAKEN: Final = frozenset({"sandbox", "remembered", "operator"})
"""Names used in records in place of a provider: no provider may have one of these."""


def provider_names() -> tuple[str, ...]:
    """The names of all providers that are installed, in alphabetical order."""
    return tuple(sorted(_installed().names))


def refuse_unusable() -> None:
    """Load each provider that another package brings; the service's own are known to work.

    Raises:
        IdentityProviderRefused: one of them is unusable, or has the name of another one.
    """
    for entry in _installed():
        if not entry.module.startswith(f"{__package__}."):
            _adapter(entry.name)


@cache
def _installed() -> EntryPoints:
    return entry_points(group="countersign.identity_providers")


class IdentityProviders:
    """Makes identity providers from an account's credentials."""

    def __init__(self, keyed: KeyedHash, clock: Clock, outbound: Outbound = DIRECT) -> None:
        self._keyed = keyed
        self._clock = clock
        self._outbound = outbound

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
            outbound=self._outbound,
        )

    def origin(self, name: str, credentials: bytes) -> str:
        """The address where these credentials are valid; InvalidArgument: they cannot work."""
        return _read(name, _adapter(name).credentials_type, credentials).origin

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
    offered = _installed().select(name=name)
    if not offered:
        msg = f"Unknown provider {name!r}. The providers are: {', '.join(provider_names())}."
        raise InvalidArgument(msg)
    if len(offered) > 1:
        packages = " and ".join(sorted(map(_package, offered)))
        raise IdentityProviderRefused(
            f"The packages {packages} bring an identity provider of one name, {name}. It is a "
            f"matter of chance which of them would decide about buyers: uninstall all but one."
        )
    [entry] = offered
    found: Any = None
    try:
        found = entry.load()
        problem = _problem(name, found)
    except Exception as error:  # noqa: BLE001 - whatever code of another package raises
        problem = f"its module fails with {type(error).__name__}: {error}"
    if problem is not None:
        raise IdentityProviderRefused(
            f"The identity provider {name} of the package {_package(entry)} cannot be used: "
            f"{problem}. Install a version that fits this release, or uninstall the package."
        )
    adapter: type[IdentityProvider[Any]] = found
    return adapter


def _problem(name: str, found: object) -> str | None:
    """Why this cannot be the provider of that name; None: usable."""
    if _NAME.fullmatch(name) is None or name in _TAKEN:
        return "a name has 2 to 20 small letters, digits and underscores, and is not reserved"
    if not (isinstance(found, type) and issubclass(found, IdentityProvider)):
        return "it is no subclass of IdentityProvider"
    lacks = [said for said in IdentityProvider.__annotations__ if not hasattr(found, said)]
    if lacks or isabstract(found):
        lacks += sorted(getattr(found, "__abstractmethods__", ()))
        return f"its class lacks {', '.join(lacks)}"
    return None if found.name == name else f"its class has the name {found.name}"


def _package(entry: EntryPoint) -> str:
    return "without metadata" if entry.dist is None else entry.dist.name


def _read(name: str, kind: type[Credentials], credentials: bytes) -> Credentials:
    if len(credentials) > 64 * 1024:
        raise InvalidArgument("A credentials file can have at most 64 KiB.")
    try:
        read = msgspec.json.decode(credentials, type=kind)
        read.check()
    except msgspec.ValidationError as error:
        # The text names the member and the expected value, and repeats an unknown word.
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
