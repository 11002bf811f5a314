"""Notices: the words, their versions and their lifecycle.

No notice id and no number of lines is hard-coded here. A version's content is published once and
never changes; its later history is a list of events.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.base.errors import NoticeNotFound, NoticeNotInForce, NoticeNotReviewed
from countersign.base.values import Mode
from countersign.core.notices.rule import AppliesTo, Following, following
from countersign_evidence.canonical import canonical_json
from countersign_evidence.offline import verify as rules


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen.

    It uses the list of code points in the evidence format, the same for every version of Unicode:
    white space, control and format characters, default-ignorable code points, private use,
    noncharacters, combining marks, emoji modifiers and a few invisible characters. Where something
    visible is left, the rest does no harm.
    """
    return not (text.isascii() and text.isalnum()) and rules.is_blank(text)


class Bullet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a notice; the buyer initials each."""

    id: str
    text: str


class NoticeContent(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The content of one version, as the notice file gives it and the published bytes keep it.

    `effective_from` is a date (`2026-01-01`). A member that the file leaves out is left out of
    the published bytes, so that members added by later releases change no digest.
    """

    id: str
    version: str
    title: str
    heading: str
    bullets: tuple[Bullet, ...]
    attestation_text: str
    source_law: str
    source_bill: str
    jurisdiction: str
    language: str
    effective_from: str
    source_url: str
    obligations: Any = None
    retention_years: int | None = None
    editorial: tuple[str, ...] = ()
    text_gaps: tuple[str, ...] = ()
    # In a file only: which orders the notice is for. The published bytes never hold it.
    applies_to: AppliesTo | None = None


class LifecycleEvent(StrEnum):
    """What can happen to a published version."""

    PUBLISHED = "published"
    RULE_PUBLISHED = "rule_published"
    """The version has a rule that says which orders the notice is for."""
    REVIEWED = "reviewed"
    ENJOINED = "enjoined"
    """A court stopped the notice: live keys are served no version of it."""
    REINSTATED = "reinstated"
    """An operator brought the notice back with this version, and named the text it was compared
    with."""
    WITHDRAWN = "withdrawn"


LIFTS: Final = "lifts"
"""The detail of a reinstatement with the identifiers of the injunctions that it lifts.

They are named, not found by time, so that a lagging clock never lifts an injunction."""


RULE: Final = "rule"
"""The detail of a review with the version of the rule that was compared with the law."""
APPLIES_TO: Final = "applies_to"
"""The detail of a published rule: its canonical JSON."""


class NoticeStatus(StrEnum):
    """The status of a version in one mode at one time."""

    IN_FORCE = "in_force"
    NOT_REVIEWED = "not_reviewed"
    SCHEDULED = "scheduled"
    SUPERSEDED = "superseded"
    ENJOINED = "enjoined"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeEvent:
    """One event of a version's lifecycle; `details` are strings such as who, against, reason."""

    id: str
    notice_id: str
    version: str
    type: LifecycleEvent
    at: datetime
    details: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVersion:
    """A version as stored: its exact bytes, their digest, and its events, `published` first."""

    body: bytes
    digest: str
    events: tuple[NoticeEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeEdition:
    """A published version with its lifecycle. `effective_at` is `effective_from` at 0:00 local."""

    content: NoticeContent
    digest: str
    effective_at: datetime
    events: tuple[NoticeEvent, ...]
    following: Following = field(init=False)
    """Coverage of the version, and obligations of its orders."""
    rules: tuple[AppliesTo, ...] = field(init=False)
    """The rules for which orders the notice is for: all published for the version, in order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "following", following(self.content.obligations))
        object.__setattr__(self, "rules", tuple(rules_in(self.events)))

    @property
    def published_at(self) -> datetime:
        return self.events[0].at

    @property
    def review(self) -> NoticeEvent | None:
        """The latest review, or None while no one has compared the text with the official one.

        A review of an incomplete text never counts.
        """
        if self.content.text_gaps:
            return None
        return self._latest(LifecycleEvent.REVIEWED, LifecycleEvent.REINSTATED)

    @property
    def removal(self) -> NoticeEvent | None:
        """The event that keeps the version out of force, if any."""
        withdrawn = self._latest(LifecycleEvent.WITHDRAWN)
        return withdrawn or next(reversed(open_injunctions((self,))), None)

    def rule_for(self, mode: Mode) -> tuple[AppliesTo | None, bool]:
        """The rule for keys of this mode, and whether it and the text are reviewed.

        It is the one published last; for live keys the last reviewed one, if any.
        """
        named = {event.details.get(RULE) for event in self.events}
        reviewed = [rule for rule in self.rules if self.review and rule.version in named]
        latest = self.rules[-1] if self.rules else None
        rule = reviewed[-1] if reviewed and mode is Mode.LIVE else latest
        return rule, rule in reviewed

    def _latest(self, *types: LifecycleEvent) -> NoticeEvent | None:
        return next((e for e in reversed(self.events) if e.type in types), None)


def open_injunctions(versions: Iterable[NoticeEdition]) -> tuple[NoticeEvent, ...]:
    """The injunctions against these versions that no reinstatement has lifted."""
    events = [event for version in versions for event in version.events]
    lifted = {id_ for event in events for id_ in event.details.get(LIFTS, "").split()}
    return tuple(e for e in events if e.type is LifecycleEvent.ENJOINED and e.id not in lifted)


def rule_details(rule: AppliesTo | None) -> dict[str, str]:
    """The details of the event that publishes a rule."""
    return {APPLIES_TO: canonical_json(rule).decode()}


def rules_in(events: Iterable[NoticeEvent]) -> list[AppliesTo]:
    """The rules that these events published."""
    decode, type_ = msgspec.json.decode, LifecycleEvent.RULE_PUBLISHED
    return [decode(e.details[APPLIES_TO], type=AppliesTo) for e in events if e.type is type_]


def published_bytes(content: NoticeContent) -> bytes:
    """The canonical JSON bytes that publishing stores permanently."""
    return canonical_json(msgspec.structs.replace(content, applies_to=None))


def notice_digest(body: bytes) -> str:
    """The hex SHA-256 of published bytes: the `notice_digest` of a record."""
    return sha256(body).hexdigest()


def version_in_force(versions: Iterable[NoticeEdition], mode: Mode, now: datetime) -> NoticeEdition:
    """The version that a key of this mode is served at this time.

    It is the effective version with the latest `effective_from` (if equal, the one published last)
    that is neither withdrawn nor enjoined, and for live keys has been reviewed. While an injunction
    is open, live keys are served no version at all.

    Raises:
        NoticeNotFound: there are no versions.
        NoticeNotReviewed: a version would be in force, but its text is unreviewed (live only).
        NoticeNotInForce: there is none.
    """
    known = list(versions)
    if not known:
        raise NoticeNotFound
    if mode is Mode.LIVE and open_injunctions(known):
        raise NoticeNotInForce
    effective = [v for v in known if v.removal is None and v.effective_at <= now]
    eligible = [v for v in effective if mode is Mode.TEST or v.review is not None]
    if eligible:
        return max(eligible, key=lambda v: (v.effective_at, v.events[0].id))
    if mode is Mode.LIVE and (effective or all(v.review is None for v in known)):
        raise NoticeNotReviewed
    raise NoticeNotInForce


def status_of(
    version: NoticeEdition, versions: Sequence[NoticeEdition], mode: Mode, now: datetime
) -> NoticeStatus:
    """The state of a notice's version for keys of this mode."""
    if version.removal is not None:
        enjoined = version.removal.type is LifecycleEvent.ENJOINED
        return NoticeStatus.ENJOINED if enjoined else NoticeStatus.WITHDRAWN
    if mode is Mode.LIVE and version.review is None:
        return NoticeStatus.NOT_REVIEWED
    if mode is Mode.LIVE and open_injunctions(versions):
        return NoticeStatus.ENJOINED
    if version.effective_at > now:
        return NoticeStatus.SCHEDULED
    current = version_in_force(versions, mode, now)
    return NoticeStatus.IN_FORCE if current is version else NoticeStatus.SUPERSEDED
