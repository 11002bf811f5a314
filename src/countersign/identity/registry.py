"""The identity providers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_type_hints

import msgspec

from countersign.clock import Clock
from countersign.errors import InvalidArgument
from countersign.identity.base import Adapter, Credentials, IdentityProvider
from countersign.identity.didit import Didit
from countersign.identity.fingerprint import KeyedHash, fingerprints
from countersign.identity.onfido import Onfido
from countersign.identity.persona import Persona
from countersign.identity.plaid import Plaid
from countersign.identity.stripe import Stripe
from countersign.identity.transport import DIRECT, Reach
from countersign.identity.veriff import Veriff

_CREDENTIALS_BYTES_MAX: Final = 64 * 1024
_ADAPTERS: Final[Mapping[str, type[Adapter[Any]]]] = {
    adapter.name: adapter for adapter in (Stripe, Persona, Veriff, Plaid, Didit, Onfido)
}
PROVIDER_NAMES: Final = tuple(_ADAPTERS)


class IdentityProviders:
    """Makes identity providers from an account's credentials."""

    def __init__(self, keyed: KeyedHash, clock: Clock, reach: Reach = DIRECT) -> None:
        self._keyed = keyed
        self._clock = clock
        self._reach = reach

    @property
    def names(self) -> Sequence[str]:
        """The known providers."""
        return PROVIDER_NAMES

    def __call__(self, name: str, credentials: bytes, base_url: str | None) -> IdentityProvider:
        """A provider, from the content of a credentials file (a JSON object).

        Raises:
            InvalidArgument: the provider is unknown, or the credentials cannot work.
        """
        return _adapter(name)(
            _read(name, credentials),
            base_url=base_url,
            fingerprint=fingerprints(self._keyed, base_url),
            clock=self._clock,
            reach=self._reach,
        )

    def review(self, name: str, credentials: bytes) -> Sequence[str]:
        """Warnings for an operator about these credentials, one sentence or more for each.

        Raises:
            InvalidArgument: they cannot work, or never verify a live buyer.
        """
        read = _read(name, credentials)
        if read.is_test:
            msg = (
                f"These credentials are for the test mode of {name}, whose sessions are refused "
                "for live keys. Give the live credentials."
            )
            raise InvalidArgument(msg)
        if getattr(read, "webhook_secrets", True):
            return []
        hint = (
            f"the credentials contain no webhook_secrets: every message of {name} is refused, "
            "and undecided sessions are only polled, at longest every 3 hours."
        )
        return [hint]


def _adapter(name: str) -> type[Adapter[Any]]:
    if name not in _ADAPTERS:
        msg = f"Unknown provider {name!r}. The providers are: {', '.join(_ADAPTERS)}."
        raise InvalidArgument(msg)
    return _ADAPTERS[name]


def _read(name: str, credentials: bytes) -> Credentials:
    kind = _adapter(name).credentials_type
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
            detail = f"Expected {_words_at(kind, place)} - {place}"
        msg = f"These are not credentials for {name}: {detail}"
        raise InvalidArgument(msg) from None
    except msgspec.DecodeError:
        raise InvalidArgument("A credentials file must contain a JSON object.") from None
    except ValueError as error:
        msg = f"These credentials cannot work: {error}"
        raise InvalidArgument(msg) from None
    return read


def _words_at(credentials: type, place: str) -> str:
    """The words that a member may be, such as `live` or `sandbox`; `place` names the member."""
    member = get_type_hints(credentials).get(place.removeprefix("at `$.").removesuffix("`"))
    return " or ".join(f"`{word}`" for word in get_args(member)) or "another word"
