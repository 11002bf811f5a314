"""Notice versions and their lifecycle in the database."""

from countersign.base.db.database import Database
from countersign.core.notices import registry as sql
from countersign.core.notices.model import LifecycleEvent, PublishedVersion
from tests.storage import items
from tests.support.databases import Run

BODY = b'{"text":"\xc3\x84\\u0000"}'


def test_a_published_version_is_read_back_with_its_events_oldest_first(
    database: Database, run: Run
) -> None:
    assert run(database.read(sql.published_versions)) == []
    events = [
        items.notice_event("a-notice", "1", kind, items.NOON + n * items.SECOND)
        for n, kind in enumerate(LifecycleEvent)
    ]
    assert events[0].type is LifecycleEvent.PUBLISHED
    run(database.write(sql.add_version, BODY, "digest 1", events[0]))
    for event in events[1:]:
        run(database.write(sql.add_event, event))
    second = items.notice_event("a-notice", "2", at=items.NOON + 60 * items.SECOND)
    run(database.write(sql.add_version, BODY + b" ", "digest 2", second))
    assert run(database.read(sql.published_versions)) == [
        PublishedVersion(body=BODY, digest="digest 1", events=tuple(events)),
        PublishedVersion(body=BODY + b" ", digest="digest 2", events=(second,)),
    ]


def test_every_lifecycle_event_moves_the_revision_on(database: Database, run: Run) -> None:
    revisions = [run(database.read(sql.revision_of))]
    run(database.write(sql.add_version, BODY, "digest", items.notice_event("a-notice")))
    revisions.append(run(database.read(sql.revision_of)))
    for kind in list(LifecycleEvent)[1:]:
        run(database.write(sql.add_event, items.notice_event("a-notice", kind=kind)))
        revisions.append(run(database.read(sql.revision_of)))
    assert revisions == sorted(set(revisions))


def test_a_version_is_known_by_its_digest(database: Database, run: Run) -> None:
    run(database.write(sql.add_version, BODY, "digest", items.notice_event("a-notice")))
    assert run(database.read(sql.digest_of, "a-notice", "1")) == "digest"
    for other in (("a-notice", "2"), ("another", "1")):
        assert run(database.read(sql.digest_of, *other)) is None
