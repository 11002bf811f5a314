"""Typed, pressed, gone back, changed, in two tabs: the record has the service's observations.

Histories are drawn at random, and compared after each step with plain facts about each line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.base.values import Mode
from countersign.core.checkout import model
from countersign.core.checkout.model import Collected, Content, Session, Status
from countersign.core.checkout.order import Press, Reading
from countersign_evidence.process import Surface
from tests.clearances.desk import NO_ONE

LINES: Final = 4
DIGEST: Final = "d" * 64
BEGIN: Final = datetime(2026, 11, 20, 21, 30, tzinfo=UTC)
TEXTS: Final = st.sampled_from(["AB", "XY"])
FIELDS: Final = st.tuples(*[st.one_of(st.just(""), TEXTS)] * LINES)
NOTHING: Final = ("",) * LINES


@dataclass(frozen=True)
class Tried:
    """An act: a view, a review, or a form with these texts."""

    what: str
    texts: tuple[str, ...] = NOTHING
    line: int = 0
    label: str = ""
    """The text on the button of that line, which another tab may have changed since."""

    @property
    def surface(self) -> Surface:
        return Surface.COMPONENT if self.what.endswith("component") else Surface.PAGE


STEPS: Final = st.one_of(
    st.sampled_from([Tried("look"), Tried("look in the component"), Tried("review")]),
    st.builds(Tried, st.just("keep"), FIELDS),
    st.builds(
        Tried,
        st.just("send all"),
        st.tuples(*[TEXTS] * LINES),
    ),
    st.builds(Tried, st.just("press"), FIELDS, st.integers(2, LINES), TEXTS),
    st.builds(Tried, st.just("press"), st.just(NOTHING), st.integers(2, LINES), TEXTS),
)


@dataclass
class Fact:
    """Observations of one line."""

    text: str = ""
    how: str | None = None
    served: datetime | None = None
    first: datetime | None = None
    last: datetime | None = None
    others: int = 0


@dataclass
class Plain:
    """The oracle: facts for each line, and nothing else."""

    lines: list[Fact] = field(default_factory=list)
    surface: Surface | None = None
    reviewed: bool = False

    def look(self, now: datetime, surface: Surface) -> None:
        if self.surface is not surface:
            self.lines, self.reviewed = [Fact() for _ in range(LINES)], False
        self.surface = surface
        for line in self.lines:
            if not line.text:
                line.served = now

    def form(self, now: datetime, tried: Tried) -> None:
        first = self.lines[0].text
        counts = bool(tried.line) and first == tried.label == (tried.texts[0] or first)
        for number, text in enumerate(tried.texts, 1):
            if text and not (counts and number == tried.line):
                self.put(number, text, "typed", now)
        if counts:
            self.put(tried.line, tried.label, "adopted", now)

    def put(self, number: int, text: str, how: str, now: datetime) -> None:
        line = self.lines[number - 1]
        if line.text == text:
            return
        if line.text:
            line.last, line.others = now, line.others + 1
        else:
            line.first = now
        line.text, line.how, self.reviewed = text, how, False


def session() -> Session:
    content = Content(
        session_id="cs", return_url="https://shop.example/", notice_id="ab1263", cbid=None,
        collect=(Collected.ACKNOWLEDGMENT,), shipping_zip=None, product_class=None, origin=None,
        locale="en",
    )  # fmt: skip
    return Session(
        id="chk", account_id="acct", mode=Mode.TEST, revision=1, token_digest=b"", shred_key=None,
        status=Status.OPEN, created_at=BEGIN, expires_at=BEGIN + timedelta(days=1), ended_at=None,
        ack_id=None, clearance_id=None, content=content,
    )  # fmt: skip


def shown(one: Session, now: datetime, surface: Surface) -> Session:
    return model.shown(one, now, ("1", DIGEST, LINES), surface, None, "en")


def reading_of(one: Session) -> Reading:
    reading = one.asked.reading
    assert reading is not None
    return reading


@given(st.lists(STEPS, max_size=12))
@settings(deadline=None)
def test_each_line_shows_its_observations(steps: list[Tried]) -> None:
    """Each line's initials, how they came, and when; whatever else happened."""
    one, plain = shown(session(), BEGIN, Surface.PAGE), Plain()
    plain.look(BEGIN, Surface.PAGE)
    for number, tried in enumerate(steps, 1):
        one = step(one, plain, BEGIN + timedelta(seconds=number), tried)
        reading = reading_of(one)
        texts = tuple(fact.text for fact in plain.lines)
        assert reading.known == texts
        assert (reading.initials is not None) == all(texts)
        assert (reading.reviewed_at is not None) == plain.reviewed
        assert [
            (line.method, line.shown_at, line.initialed_at, line.changed_at, line.changes)
            for line in reading.lines
        ] == [(f.how, f.served, f.first, f.last, f.others) for f in plain.lines]
        assert reading.lines[0].method != "adopted"


def step(one: Session, plain: Plain, now: datetime, tried: Tried) -> Session:
    """Do one step to both, and give the session after it."""
    if tried.what.startswith("look"):
        plain.look(now, tried.surface)
        return shown(one, now, tried.surface)
    if tried.what == "review":
        if reading_of(one).initials is None:
            return one
        plain.reviewed = True
        return model.reviewed(one, now, "en")
    plain.form(now, tried)
    press = Press(tried.line, tried.label) if tried.line else None
    return model.initialed(one, now, DIGEST, tried.texts, NO_ONE.client, press=press)
