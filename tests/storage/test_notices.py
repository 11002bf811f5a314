"""The store of notice versions and their lifecycle."""

import pytest

from countersign.db.database import Database
from countersign.errors import NoticeVersionConflict, UnknownNotice
from countersign.notices.model import LifecycleEvent, PublishedVersion
from countersign.notices.sql import Notices
from tests.storage import items
from tests.storage.conftest import Run

BODY = b'{"text":"\xc3\x84\\u0000"}'


def test_a_published_version_is_read_back_with_its_events_oldest_first(
    database: Database, run: Run
) -> None:
    store = Notices(database, items.JOURNAL)
    assert run(store.versions()) == []
    events = [
        items.notice_event("a-notice", "1", kind, items.NOON + n * items.SECOND)
        for n, kind in enumerate(LifecycleEvent)
    ]
    assert events[0].type is LifecycleEvent.PUBLISHED
    run(store.publish(BODY, "digest 1", events[0], []))
    for event in events[1:]:
        run(store.add_event(event, []))
    second = items.notice_event("a-notice", "2", at=items.NOON + 60 * items.SECOND)
    run(store.publish(BODY + b" ", "digest 2", second, []))
    assert run(store.versions()) == [
        PublishedVersion(body=BODY, digest="digest 1", events=tuple(events)),
        PublishedVersion(body=BODY + b" ", digest="digest 2", events=(second,)),
    ]


def test_every_lifecycle_event_moves_the_revision_on(database: Database, run: Run) -> None:
    store = Notices(database, items.JOURNAL)
    revisions = [run(store.revision())]
    run(store.publish(BODY, "digest", items.notice_event("a-notice"), []))
    revisions.append(run(store.revision()))
    for kind in list(LifecycleEvent)[1:]:
        run(store.add_event(items.notice_event("a-notice", kind=kind), []))
        revisions.append(run(store.revision()))
    assert revisions == sorted(set(revisions))


def test_a_version_is_published_once(database: Database, run: Run) -> None:
    store = Notices(database, items.JOURNAL)
    run(store.publish(BODY, "digest", items.notice_event("a-notice"), []))
    before = run(store.versions())
    with pytest.raises(NoticeVersionConflict):
        run(store.publish(b"other words", "other digest", items.notice_event("a-notice"), []))
    assert run(store.versions()) == before


@pytest.mark.parametrize(("notice_id", "version"), [("a-notice", "2"), ("another", "1")])
def test_an_event_needs_a_published_version(
    database: Database, run: Run, notice_id: str, version: str
) -> None:
    store = Notices(database, items.JOURNAL)
    run(store.publish(BODY, "digest", items.notice_event("a-notice"), []))
    before = run(store.versions())
    with pytest.raises(UnknownNotice):
        run(store.add_event(items.notice_event(notice_id, version, LifecycleEvent.REVIEWED), []))
    assert run(store.versions()) == before
