"""The registry: how old an answer may be, and that a refusal is never old."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import StaticPool, create_engine

from countersign.base.db.database import Database
from countersign.base.db.tables import metadata, notice_events, notice_versions
from countersign.base.errors import (
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    StorageUnavailable,
)
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import Mode, from_ns
from countersign.core.notices import registry as sql
from countersign.core.notices.model import (
    LifecycleEvent,
    NoticeEdition,
    NoticeEvent,
    notice_digest,
)
from countersign.core.notices.registry import Registry, all_versions
from tests.unit.support import HandClock, jcs, run

ZONE = ZoneInfo("America/Los_Angeles")


class Notices:
    """A database of notices in memory as the registry sees it, and the requests to it."""

    def __init__(self) -> None:
        self.engine = create_engine("sqlite://", poolclass=StaticPool)
        metadata.create_all(self.engine, tables=[notice_versions, notice_events])
        self.asked: Counter[Callable[..., Any]] = Counter()
        self.broken = False

    async def read(self, act: Callable[..., Any], *args: object) -> object:
        self.asked[act] += 1
        if self.broken:
            raise StorageUnavailable
        return self.do(act, *args)

    def do(self, act: Callable[..., Any], *args: object) -> object:
        with self.engine.begin() as connection:
            return act(connection, *args)


class World:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.notices = Notices()
        self.numbers = count()
        self.registry = Registry(cast("Database", self.notices), self.clock, ZONE)

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.ns)

    def event(self, notice: str, version: str, kind: LifecycleEvent) -> NoticeEvent:
        """Something happens to a version, in another process."""
        event = NoticeEvent(
            id=f"nev_{next(self.numbers):03}",
            notice_id=notice,
            version=version,
            type=kind,
            at=self.now,
            details={},
        )
        if kind is not LifecycleEvent.PUBLISHED:
            self.notices.do(sql.add_event, event)
        return event

    def publish(
        self, notice: str, version: str, *, reviewed: bool = True, effective: str = "2026-01-01"
    ) -> bytes:
        body = jcs(content(notice, version, effective))
        event = self.event(notice, version, LifecycleEvent.PUBLISHED)
        self.notices.do(sql.add_version, body, notice_digest(body), event)
        if reviewed:
            self.event(notice, version, LifecycleEvent.REVIEWED)
        return body

    def current(self, notice: str, mode: Mode) -> NoticeEdition | None:
        """The version in force, if there is one."""
        known = run(self.registry.notices(fresh=True))
        return known.current(notice, mode, self.now, remember=True)

    def in_force(self, notice: str = "n", mode: Mode = Mode.LIVE) -> str:
        """The version that is served."""
        return run(self.registry.in_force(notice, mode)).content.version


def content(notice: str, version: str, effective: str = "2026-01-01") -> dict[str, object]:
    words = ("title", "heading", "attestation_text", "source_law", "source_bill", "source_url")
    return dict.fromkeys(words, "x") | {
        "id": notice,
        "version": version,
        "bullets": [{"id": "A", "text": "a"}],
        "jurisdiction": "US-CA",
        "language": "en",
        "effective_from": effective,
    }


@pytest.fixture
def world() -> World:
    made = World()
    made.publish("n", "1")
    return made


def test_a_snapshot_answers_for_a_quarter_of_a_second(world: World) -> None:
    """Then the database is asked again: an operator's act counts within that time."""
    assert world.in_force() == "1"
    world.event("n", "1", LifecycleEvent.WITHDRAWN)
    world.publish("n", "2")
    world.clock.advance(STALENESS_SECONDS - 0.001)
    assert world.in_force() == "1"
    world.clock.advance(0.001)
    assert world.in_force() == "2"
    assert STALENESS_SECONDS <= 0.25


def test_while_a_snapshot_is_fresh_the_database_is_not_asked(world: World) -> None:
    """The hot path."""
    for _ in range(10):
        world.in_force()
    assert world.notices.asked == {sql.revision_of: 1, all_versions: 1}


def test_without_news_only_the_revision_is_read(world: World) -> None:
    """Looking again is cheap."""
    for _ in range(5):
        world.in_force()
        world.clock.advance(1)
    assert world.notices.asked == {sql.revision_of: 5, all_versions: 1}


def test_a_refusal_is_given_only_after_a_fresh_look(world: World) -> None:
    """Publishing and reviewing count at once."""
    world.in_force()
    with pytest.raises(NoticeNotFound):
        world.in_force("new")
    world.publish("new", "1", reviewed=False)
    with pytest.raises(NoticeNotReviewed):
        world.in_force("new")
    assert world.in_force("new", Mode.TEST) == "1"
    world.event("new", "1", LifecycleEvent.REVIEWED)
    assert world.in_force("new") == "1"


def test_a_version_takes_effect_with_time_alone(world: World) -> None:
    """0:00 of its day in the zone of the deployment, within the age of a snapshot."""
    tomorrow = world.now.astimezone(ZONE).date() + timedelta(days=1)
    world.publish("n", "2", effective=tomorrow.isoformat())
    midnight = datetime.combine(tomorrow, datetime.min.time(), ZONE)
    world.clock.advance((midnight - world.now).total_seconds() - 0.001)
    assert world.in_force() == "1"
    world.clock.advance(STALENESS_SECONDS)
    assert world.in_force() == "2"


def test_modes_are_remembered_apart(world: World) -> None:
    """A draft in test never reaches live."""
    world.publish("n", "2-draft", reviewed=False)
    for _ in range(2):
        assert world.in_force(mode=Mode.TEST) == "2-draft"
        assert world.in_force(mode=Mode.LIVE) == "1"


def test_callers_share_one_reading() -> None:
    """A burst after a pause does not become a burst on the database."""
    world = World()
    world.publish("n", "1")

    async def burst() -> list[NoticeEdition]:
        return await asyncio.gather(*(world.registry.in_force("n", Mode.LIVE) for _ in range(50)))

    assert {found.content.version for found in run(burst())} == {"1"}
    assert world.notices.asked[sql.revision_of] <= 2


def test_a_failed_reading_is_reported_and_not_remembered(world: World) -> None:
    """When the database is back, so are the notices."""
    world.notices.broken = True
    with pytest.raises(StorageUnavailable):
        world.in_force()
    world.notices.broken = False
    assert world.in_force() == "1"


def test_old_versions_can_be_read_and_live_keys_see_only_reviewed_ones(world: World) -> None:
    """An acknowledged text stays readable; a draft is for test keys."""
    world.publish("n", "2", reviewed=False)
    registry = world.registry
    assert run(registry.version_for("n", "1", Mode.LIVE)).content.version == "1"
    assert run(registry.version_for("n", "2", Mode.TEST)).content.version == "2"
    with pytest.raises(NoticeNotReviewed):
        run(registry.version_for("n", "2", Mode.LIVE))
    with pytest.raises(NoticeNotFound, match="no version 3"):
        run(registry.version_for("n", "3", Mode.TEST))
    with pytest.raises(NoticeNotFound):
        run(registry.versions("other"))


def test_the_registry_lists_notices_by_name_and_versions_by_age(world: World) -> None:
    """And lists for each notice the version in force, or none."""
    world.publish("b", "1")
    world.publish("a", "1", effective="2999-01-01")
    world.publish("n", "2")
    assert run(world.registry.notice_ids()) == ["a", "b", "n"]
    assert [v.content.version for v in run(world.registry.versions("n"))] == ["1", "2"]
    assert world.current("a", Mode.TEST) is None
    with pytest.raises(NoticeNotInForce):
        world.in_force("a")
    current = world.current("n", Mode.LIVE)
    assert current is not None
    assert current.content.version == "2"


def test_the_served_bytes_are_the_published_ones(world: World) -> None:
    """The digest is that of the stored bytes; nothing is written again."""
    body = world.publish("n", "2")
    found = run(world.registry.in_force("n", Mode.LIVE))
    assert found.digest == notice_digest(body)
    assert found.effective_at == datetime(2026, 1, 1, tzinfo=ZONE)
