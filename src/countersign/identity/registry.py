"""The identity providers that there are, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, get_args, get_type_hints

import msgspec

from countersign.errors import InvalidArgument
from countersign.identity import didit, onfido, persona, plaid, stripe, veriff
from countersign.identity.fingerprint import Fingerprint, KeyedHash, fingerprints
from countersign.identity.reported import Reported
from countersign.identity.transport import DIRECT, Reach
from countersign.ports import Clock, IdentityProvider

_CREDENTIALS_BYTES_MAX: Final = 64 * 1024


class _Make(Protocol):
    def __call__(
        self,
        credentials: Any,  # noqa: ANN401 - each provider has its own
        *,
        base_url: str | None,
        fingerprint: Fingerprint,
        clock: Clock,
        reach: Reach,
    ) -> IdentityProvider: ...


class _Kind(msgspec.Struct, frozen=True):
    """One provider: what its credentials file holds, and how to make it."""

    credentials: type
    check: Callable[[Any], None]
    make: _Make


_KINDS: Final[Mapping[str, _Kind]] = {
    "stripe": _Kind(stripe.Credentials, stripe.check, stripe.Provider),
    "persona": _Kind(persona.Credentials, persona.check, persona.Provider),
    "veriff": _Kind(veriff.Credentials, veriff.check, veriff.Veriff),
    "plaid": _Kind(plaid.Credentials, plaid.check, plaid.Provider),
    "didit": _Kind(didit.Credentials, didit.check, didit.Didit),
    "onfido": _Kind(onfido.Credentials, onfido.check, onfido.Provider),
}


PROVIDER_NAMES: Final = tuple(_KINDS)


class IdentityProviders:
    """See `ports.ProviderFactory`."""

    def __init__(self, keyed: KeyedHash, clock: Clock, reach: Reach = DIRECT) -> None:
        self._keyed = keyed
        self._clock = clock
        self._reach = reach

    @property
    def names(self) -> Sequence[str]:
        """The providers that there are."""
        return PROVIDER_NAMES

    def __call__(self, name: str, credentials: bytes, base_url: str | None) -> IdentityProvider:
        """A provider, from the content of a credentials file (a JSON object).

        Raises:
            InvalidArgument: there is no such provider, or the credentials cannot be its.
        """
        kind, read = _read(name, credentials)
        fingerprint = fingerprints(self._keyed, base_url)
        made = kind.make(
            read,
            base_url=base_url,
            fingerprint=fingerprint,
            clock=self._clock,
            reach=self._reach,
        )
        return Reported(made)

    def review(self, name: str, credentials: bytes) -> Sequence[str]:
        """What an operator should know about these credentials.

        Raises:
            InvalidArgument: they cannot be this provider's, or never verify a live buyer.
        """
        _, read = _read(name, credentials)
        key = getattr(read, "api_key", "")
        if getattr(read, "environment", None) == "sandbox" or key.startswith("rk_test_"):
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


def _read(name: str, credentials: bytes) -> tuple[_Kind, Any]:
    kind = _KINDS.get(name)
    if kind is None:
        msg = f"Unknown provider {name!r}. The providers are: {', '.join(_KINDS)}."
        raise InvalidArgument(msg)
    if len(credentials) > _CREDENTIALS_BYTES_MAX:
        raise InvalidArgument("A credentials file can have at most 64 KiB.")
    try:
        read: Any = msgspec.json.decode(credentials, type=kind.credentials)
        kind.check(read)
    except msgspec.ValidationError as error:
        # The text names the member and what it should be; of a wrong word also the word.
        told = str(error)
        if told.startswith("Invalid enum value"):
            place = told.partition(" - ")[2]
            told = f"Expected {_words_at(kind.credentials, place)} - {place}"
        msg = f"These are not credentials for {name}: {told}"
        raise InvalidArgument(msg) from None
    except msgspec.DecodeError:
        raise InvalidArgument("A credentials file must contain a JSON object.") from None
    except ValueError as error:
        msg = f"These credentials cannot work: {error}"
        raise InvalidArgument(msg) from None
    return kind, read


def _words_at(credentials: type, place: str) -> str:
    """The words that a member may be, such as `live` or `sandbox`; `place` names the member."""
    member = get_type_hints(credentials).get(place.removeprefix("at `$.").removesuffix("`"))
    return " or ".join(f"`{word}`" for word in get_args(member)) or "another word"
