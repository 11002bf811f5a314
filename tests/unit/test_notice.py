"""Which version of a notice is in force: generated histories against the rule in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.base.errors import NoticeNotFound, NoticeNotInForce, NoticeNotReviewed
from countersign.base.values import Mode
from countersign.core.notices.model import (
    Bullet,
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    NoticeStatus,
    notice_digest,
    published_bytes,
    status_of,
    version_in_force,
)
from tests.support import depth

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
REMOVALS = [None, LifecycleEvent.WITHDRAWN, LifecycleEvent.ENJOINED]


@dataclass(frozen=True)
class Facts:
    """The relevant facts about one version, in plain words."""

    published: int
    effective: int
    reviews: int
    removal: LifecycleEvent | None
    incomplete: bool = False

    @property
    def unreviewed(self) -> bool:
        """Whether no one has compared the whole text."""
        return self.incomplete or not self.reviews

    def in_the_way(self, mode: Mode, day: int) -> bool:
        """Whether this version may not be served on this day."""
        unreviewed = mode is Mode.LIVE and self.unreviewed
        return self.removal is not None or self.effective > day or unreviewed

    def beats(self, other: Facts) -> bool:
        """Whether this one is served if both are possible."""
        return (self.effective, self.published) > (other.effective, other.published)


def version_of(facts: Facts) -> NoticeEdition:
    """The version that these facts are about."""
    name = f"v{facts.published}"
    content = NoticeContent(
        id="n",
        version=name,
        title="t",
        heading="h",
        bullets=(Bullet(id="A", text="a"),),
        attestation_text="a",
        source_law="l",
        source_bill="b",
        jurisdiction="US-CA",
        language="en",
        effective_from="2026-01-01",
        source_url="https://example.com",
        text_gaps=("(E) is missing",) if facts.incomplete else (),
    )
    types = [LifecycleEvent.PUBLISHED, *[LifecycleEvent.REVIEWED] * facts.reviews]
    types += [facts.removal] if facts.removal else []
    events = tuple(
        NoticeEvent(
            id=f"nev_{facts.published:02}_{number}",
            notice_id="n",
            version=name,
            type=type_,
            at=START + facts.published * DAY + timedelta(minutes=number),
            details={},
        )
        for number, type_ in enumerate(types)
    )
    body = published_bytes(content)
    return NoticeEdition(
        content=content,
        digest=notice_digest(body),
        effective_at=START + facts.effective * DAY,
        events=events,
    )


HISTORIES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from(REMOVALS), st.booleans()),
    max_size=6,
).map(
    lambda rows: [
        Facts(published=n, effective=e, reviews=r, removal=x, incomplete=i)
        for n, (e, r, x, i) in enumerate(rows)
    ]
)
MODES = st.sampled_from(Mode)


def is_stopped(history: list[Facts], mode: Mode) -> bool:
    """Whether a court has stopped the notice for keys of this mode."""
    return mode is Mode.LIVE and any(f.removal is LifecycleEvent.ENJOINED for f in history)


DAYS = st.integers(0, 5)


@given(HISTORIES, MODES, DAYS)
@settings(max_examples=depth.drawn(400))
def test_the_version_in_force_follows_the_rule(history: list[Facts], mode: Mode, day: int) -> None:
    """No other servable version beats it; otherwise the refusal gives the reason."""
    versions = [version_of(facts) for facts in history]
    now = START + day * DAY
    servable = [f for f in history if not f.in_the_way(mode, day)]
    unbeaten = [f for f in servable if not any(g.beats(f) for g in servable)]
    waiting_for_review = mode is Mode.LIVE and (
        any(f.removal is None and f.effective <= day for f in history)
        or all(f.unreviewed for f in history)
    )
    if not history:
        with pytest.raises(NoticeNotFound):
            version_in_force(versions, mode, now)
    elif is_stopped(history, mode):
        with pytest.raises(NoticeNotInForce):
            version_in_force(versions, mode, now)
    elif unbeaten:
        assert version_in_force(versions, mode, now).content.version == f"v{unbeaten[0].published}"
    elif waiting_for_review:
        with pytest.raises(NoticeNotReviewed):
            version_in_force(versions, mode, now)
    else:
        with pytest.raises(NoticeNotInForce):
            version_in_force(versions, mode, now)


@given(HISTORIES, MODES, DAYS)
def test_every_version_has_the_status_of_the_rule(
    history: list[Facts], mode: Mode, day: int
) -> None:
    """Removal first, then review, an injunction, time, and whether a later one has taken over."""
    versions = [version_of(facts) for facts in history]
    for facts, version in zip(history, versions, strict=True):
        if facts.removal is not None:
            expected = NoticeStatus(facts.removal.value)
        elif mode is Mode.LIVE and facts.unreviewed:
            expected = NoticeStatus.NOT_REVIEWED
        elif is_stopped(history, mode):
            expected = NoticeStatus.ENJOINED
        elif facts.effective > day:
            expected = NoticeStatus.SCHEDULED
        elif any(g.beats(facts) for g in history if not g.in_the_way(mode, day)):
            expected = NoticeStatus.SUPERSEDED
        else:
            expected = NoticeStatus.IN_FORCE
        assert status_of(version, versions, mode, START + day * DAY) is expected


@given(HISTORIES, MODES, DAYS)
def test_the_order_of_the_given_versions_does_not_matter(
    history: list[Facts], mode: Mode, day: int
) -> None:
    """The version in force depends on the versions, not on their order in a query."""
    versions = [version_of(facts) for facts in history]
    now = START + day * DAY

    def outcome(of: list[NoticeEdition]) -> object:
        try:
            return version_in_force(of, mode, now)
        except (NoticeNotFound, NoticeNotInForce, NoticeNotReviewed) as refusal:
            return type(refusal)

    assert outcome(versions) == outcome(versions[::-1])


def test_a_version_is_in_force_from_the_very_moment_it_is_effective() -> None:
    """Not before, and without a gap after."""
    facts = Facts(published=0, effective=2, reviews=1, removal=None)
    version, at = version_of(facts), START + 2 * DAY
    assert version_in_force([version], Mode.LIVE, at) is version
    with pytest.raises(NoticeNotInForce):
        version_in_force([version], Mode.LIVE, at - timedelta(milliseconds=1))


def test_an_unreviewed_text_never_hides_a_reviewed_one_from_live_keys() -> None:
    """Publishing a new draft must not stop live sales under the text in force."""
    old = version_of(Facts(published=0, effective=0, reviews=1, removal=None))
    draft = version_of(Facts(published=1, effective=1, reviews=0, removal=None))
    now = START + 3 * DAY
    assert version_in_force([old, draft], Mode.LIVE, now) is old
    assert version_in_force([old, draft], Mode.TEST, now) is draft


def test_a_withdrawn_version_is_replaced_by_the_one_before() -> None:
    """Withdrawing an amended text brings the older one back."""
    old = version_of(Facts(published=0, effective=0, reviews=1, removal=None))
    new = version_of(Facts(published=1, effective=1, reviews=1, removal=REMOVALS[1]))
    assert version_in_force([old, new], Mode.LIVE, START + 3 * DAY) is old


def test_the_latest_review_is_shown() -> None:
    """A text may be compared again."""
    version = version_of(Facts(published=0, effective=0, reviews=2, removal=None))
    assert version.review is version.events[2]
    assert version.published_at == version.events[0].at
