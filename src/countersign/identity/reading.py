"""Reading what a provider sent: nothing is believed to be there, or to have the type it should.

Each reader gives None for what is absent, null or empty, and raises `Unreadable` for what is there
and cannot be what it is said to be. Inside `facts_unknown` it is unknown instead: a birth date
that a camera misread must not make an answer unusable for good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any, Final, NoReturn

from countersign.identity.model import Outcome, ProviderEvidence, ProviderResult
from countersign.identity.transport import (
    RETRY_AFTER_SECONDS,
    ProviderReply,
    TransportFailure,
)
from countersign.instant import from_ns
from countersign.ports import Clock

_DEPTH_MAX: Final = 32
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


_unread: ContextVar[list[str] | None] = ContextVar("unread", default=None)


class Unreadable(Exception):
    """The body is not what the provider describes; the text names the member, and no value."""


@contextmanager
def facts_unknown() -> Iterator[list[str]]:
    """Within it, a member that cannot be read counts as absent; gives the names of those.

    For facts about a person, never for what says whose session it is, in which mode, or what came
    of it.
    """
    names: list[str] = []
    before = _unread.set(names)
    try:
        yield names
    finally:
        _unread.reset(before)


def unreadable(name: str) -> None:
    """Note that a member is there and cannot be read.

    Raises:
        Unreadable: not within `facts_unknown`.
    """
    names = _unread.get()
    if names is None:
        raise Unreadable(name)
    if name not in names:
        names.append(name)


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body: UTF-8, no member twice, no NaN, at most 32 levels deep.

    Raises:
        Unreadable: it is none.
    """
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_no_member_twice, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        raise Unreadable("not JSON") from None
    if not isinstance(value, dict):
        raise Unreadable("not an object")
    if _depth(value, _DEPTH_MAX) <= 0:
        raise Unreadable("too deep")
    return value


def text(value: object, name: str) -> str | None:
    """A string; the empty one counts as absent."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _is_unicode(value):
        unreadable(name)
        return None
    return value


def flag(value: object, name: str) -> bool | None:
    """A truth value."""
    if value is None or isinstance(value, bool):
        return value
    unreadable(name)
    return None


def mapping(value: object, name: str) -> Mapping[str, Any]:
    """An object; an absent one is empty."""
    if isinstance(value, dict):
        return value
    if value is not None:
        unreadable(name)
    return {}


def sequence(value: object, name: str) -> Sequence[Any]:
    """An array; an absent one is empty."""
    if isinstance(value, list):
        return value
    if value is not None:
        unreadable(name)
    return ()


def iso_date(value: object, name: str) -> date | None:
    """A date `1990-01-31`."""
    written = text(value, name)
    if written is None:
        return None
    try:
        if _DATE.fullmatch(written):
            return date.fromisoformat(written)
    except ValueError:
        pass
    unreadable(name)
    return None


def parts_date(value: object, name: str) -> date | None:
    """A date `{"year": 1990, "month": 1, "day": 31}`; absent if a part is null."""
    parts = mapping(value, name)
    numbers = [parts.get(part) for part in ("year", "month", "day")]
    if None in numbers:
        return None
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        unreadable(name)
        return None
    try:
        return date(*[int(n) for n in numbers if n is not None])
    except (ValueError, OverflowError):
        unreadable(name)
        return None


def instant(value: object, name: str) -> datetime | None:
    """A time of RFC 3339, or Unix seconds; in UTC."""
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            unreadable(name)
            return None
    written = text(value, name)
    if written is None:
        return None
    try:
        read = datetime.fromisoformat(written)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        unreadable(name)
        return None


def evidence_of(
    reply: ProviderReply,
    clock: Clock,
    *,
    request_id: str | None = None,
    api_version: str | None = None,
    response_signature: str | None = None,
    sensitive_complete: bool = True,
) -> ProviderEvidence:
    """What is kept of an answer."""
    return ProviderEvidence(
        raw_body=reply.body,
        sha256=sha256(reply.body).hexdigest(),
        http_status=reply.status,
        request_id=request_id,
        api_version=api_version,
        request_target=reply.target,
        response_signature=response_signature,
        retrieved_at=from_ns(clock.time_ns()),
        sensitive_complete=sensitive_complete,
    )


def unanswered(provider: str, session_id: str, failure: TransportFailure) -> ProviderResult:
    """The result of a request that had no readable answer."""
    return ProviderResult(
        provider=provider,
        session_id=session_id,
        outcome=failure.outcome,
        reason_code=failure.reason,
        retry_after=failure.retry_after or RETRY_AFTER_SECONDS,
    )


def refused(
    provider: str,
    session_id: str,
    outcome: Outcome,
    reply: ProviderReply,
    *,
    evidence: ProviderEvidence | None = None,
    reason_code: str | None = None,
    unread: Unreadable | None = None,
) -> ProviderResult:
    """The result of an answer that tells nothing of a session: an error, or an unreadable one."""
    return ProviderResult(
        provider=provider,
        session_id=session_id,
        outcome=outcome,
        reason_code=reason_code or f"http_{reply.status}",
        retry_after=reply.retry_after or RETRY_AFTER_SECONDS,
        unread=(str(unread),) if unread else (),
        evidence=evidence,
    )


def outcome_of_status(status: int) -> Outcome:
    """What an HTTP status other than 200 means with every provider, unless it says otherwise."""
    if status == 404:
        return Outcome.NOT_FOUND
    if status in {408, 409, 425, 429} or status >= 500:
        return Outcome.PROVIDER_UNAVAILABLE
    if status in {400, 401, 402, 403}:
        return Outcome.PROVIDER_REJECTED
    return Outcome.INVALID_RESPONSE


def _is_unicode(value: str) -> bool:
    """Whether it holds no half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_member_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _depth(value: object, left: int) -> int:
    """How many levels are left under the deepest member."""
    if left <= 0 or not isinstance(value, dict | list):
        return left
    members = value.values() if isinstance(value, dict) else value
    return min((_depth(member, left - 1) for member in members), default=left - 1)
