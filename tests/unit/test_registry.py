"""The registry: how old an answer may be, and that a refusal is never old."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from countersign.access.audit import AuditEntry
from countersign.errors import (
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    StorageUnavailable,
)
from countersign.instant import from_ns
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.notices.model import (
    LifecycleEvent,
    NoticeEvent,
    NoticeVersion,
    PublishedVersion,
    notice_digest,
)
from countersign.notices.registry import Registry
from countersign.snapshot import STALENESS_SECONDS
from tests.unit.support import HandClock, jcs, run

ZONE = ZoneInfo("America/Los_Angeles")


class Notices:
    """Notice versions in memory, and what was asked of them. See `ports.NoticeStore`."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, str], bytes] = {}
        self.events: list[NoticeEvent] = []
        self.revisions_read = 0
        self.versions_read = 0
        self.gate: asyncio.Event | None = None
        self.broken = False

    async def revision(self) -> int:
        self.revisions_read += 1
        revision = len(self.events)
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise StorageUnavailable
        return revision

    async def versions(self) -> Sequence[PublishedVersion]:
        self.versions_read += 1
        return [
            PublishedVersion(
                body=body,
                digest=notice_digest(body),
                events=tuple(e for e in self.events if (e.notice_id, e.version) == place),
            )
            for place, body in self.bodies.items()
        ]

    async def publish(
        self, body: bytes, digest: str, published: NoticeEvent, records: Sequence[NewRecord]
    ) -> None:
        self.bodies[published.notice_id, published.version] = body
        self.events.append(published)

    async def add_event(
        self, event: NoticeEvent, records: Sequence[NewRecord], audit: AuditEntry | None = None
    ) -> None:
        self.events.append(event)


class World:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.notices = Notices()
        self.registry = Registry(self.notices, self.clock, ZONE)

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.ns)

    def event(self, notice: str, version: str, kind: LifecycleEvent) -> None:
        """Something happens to a version, in another process."""
        number = len(self.notices.events)
        event = NoticeEvent(
            id=f"nev_{number}",
            notice_id=notice,
            version=version,
            type=kind,
            at=self.now + timedelta(milliseconds=number),
            details={},
        )
        if kind is LifecycleEvent.PUBLISHED:
            self.notices.bodies[notice, version] = jcs(content(notice, version))
        self.notices.events.append(event)

    def publish(
        self, notice: str, version: str, *, reviewed: bool = True, effective: str = "2026-01-01"
    ) -> None:
        self.event(notice, version, LifecycleEvent.PUBLISHED)
        self.notices.bodies[notice, version] = jcs(content(notice, version, effective))
        if reviewed:
            self.event(notice, version, LifecycleEvent.REVIEWED)

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
    """Then the database is asked again: what an operator did counts within that time."""
    assert world.in_force() == "1"
    world.event("n", "1", LifecycleEvent.WITHDRAWN)
    world.publish("n", "2")
    world.clock.advance(STALENESS_SECONDS - 0.001)
    assert world.in_force() == "1"
    world.clock.advance(0.001)
    assert world.in_force() == "2"
    assert STALENESS_SECONDS <= 0.25


def test_while_a_snapshot_is_fresh_nothing_is_asked_of_the_database(world: World) -> None:
    """The hot path."""
    for _ in range(10):
        world.in_force()
    assert (world.notices.revisions_read, world.notices.versions_read) == (1, 1)


def test_without_news_only_the_revision_is_read(world: World) -> None:
    """Looking again is cheap."""
    for _ in range(5):
        world.in_force()
        world.clock.advance(1)
    assert (world.notices.revisions_read, world.notices.versions_read) == (5, 1)


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

    async def burst() -> list[NoticeVersion]:
        return await asyncio.gather(*(world.registry.in_force("n", Mode.LIVE) for _ in range(50)))

    assert {found.content.version for found in run(burst())} == {"1"}
    assert world.notices.revisions_read <= 2


def test_a_failed_reading_is_told_and_not_remembered(world: World) -> None:
    """When the database is back, so are the notices."""
    world.notices.broken = True
    with pytest.raises(StorageUnavailable):
        world.in_force()
    world.notices.broken = False
    assert world.in_force() == "1"


def test_old_versions_can_be_read_and_live_keys_see_reviewed_ones_only(world: World) -> None:
    """What was acknowledged stays readable; a draft is for test keys."""
    world.publish("n", "2", reviewed=False)
    registry = world.registry
    assert run(registry.version("n", "1")).content.version == "1"
    assert run(registry.version_for("n", "2", Mode.TEST)).content.version == "2"
    with pytest.raises(NoticeNotReviewed):
        run(registry.version_for("n", "2", Mode.LIVE))
    with pytest.raises(NoticeNotFound, match="not found"):
        run(registry.version("n", "3"))
    with pytest.raises(NoticeNotFound):
        run(registry.versions("other"))


def test_the_registry_lists_notices_by_name_and_versions_by_age(world: World) -> None:
    """And says of each notice which version is in force, or that there is none."""
    world.publish("b", "1")
    world.publish("a", "1", effective="2999-01-01")
    world.publish("n", "2")
    assert run(world.registry.notice_ids()) == ["a", "b", "n"]
    assert [v.content.version for v in run(world.registry.versions("n"))] == ["1", "2"]
    assert run(world.registry.current("a", Mode.TEST)) is None
    with pytest.raises(NoticeNotInForce):
        world.in_force("a")
    current = run(world.registry.current("n", Mode.LIVE))
    assert current is not None
    assert current.content.version == "2"


def test_what_is_served_is_what_was_published(world: World) -> None:
    """Bytes and digest as stored; nothing is written anew."""
    found = run(world.registry.in_force("n", Mode.LIVE))
    assert found.body == world.notices.bodies["n", "1"]
    assert found.digest == notice_digest(found.body)
    assert found.effective_at == datetime(2026, 1, 1, tzinfo=ZONE)
