"""The last published checkpoint, kept in an object store: a real S3 endpoint on the loopback."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import count
from typing import Final

import pytest

from countersign.base.errors import HeadsOverwritable, HeadUnavailable, InvalidConfiguration
from countersign.base.values import Mode
from countersign.core.log.head_store import HeadStore
from countersign_evidence.note import checkpoint_of
from tests.storage.test_heads import note
from tests.support.object_store import ObjectStore, running_store

_PLACES: Final = count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStore]:
    """Give an endpoint for all tests."""
    with running_store() as store:
        yield store


@pytest.fixture
def store(running: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """Give the endpoint, with its variables set."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def url(store: ObjectStore) -> str:
    """Give an empty place."""
    return store.url(f"place{next(_PLACES)}")


@pytest.mark.parametrize("kept", [None, note(1, 5)])
def test_a_process_that_compared_the_head_replaces_it(url: str, kept: bytes | None) -> None:
    """The first one, too; others see it at once."""
    heads, other = HeadStore(url), HeadStore(url)
    if kept is not None:
        heads.advance(Mode.LIVE, kept, None)
    assert other.read(Mode.LIVE) == kept
    assert heads.advance(Mode.LIVE, note(1, 6), kept)
    assert heads.read(Mode.LIVE) == other.read(Mode.LIVE) == note(1, 6)
    assert heads.read(Mode.TEST) is None


@pytest.mark.parametrize("kept", [note(1, 7), note(2, 0)])
def test_another_servers_later_head_stays(url: str, kept: bytes) -> None:
    """Even if this one has read before that: the store itself compares."""
    heads, other = HeadStore(url), HeadStore(url)
    heads.advance(Mode.LIVE, note(1, 5), None)
    assert heads.read(Mode.LIVE) == note(1, 5)
    assert other.advance(Mode.LIVE, kept, note(1, 5))
    assert not heads.advance(Mode.LIVE, note(1, 6), note(1, 5))
    assert heads.read(Mode.LIVE) == kept
    assert not HeadStore(url).advance(Mode.LIVE, note(1, 6), None)


def test_one_of_several_servers_that_publish_at_once_is_first(url: str) -> None:
    """The others compare again, and none overwrites a later head: no size appears twice."""
    servers = [HeadStore(url) for _ in range(4)]

    def publish(heads: HeadStore) -> list[int]:
        done = []
        for _ in range(8):
            while True:
                over = heads.read(Mode.LIVE)
                size = 1 + (0 if over is None else checkpoint_of(over).size)
                if heads.advance(Mode.LIVE, note(1, size), over):
                    done.append(size)
                    break
        return done

    with ThreadPoolExecutor(len(servers)) as pool:
        done = [*pool.map(publish, servers)]
    assert sorted(size for sizes in done for size in sizes) == [*range(1, 33)]
    assert servers[0].read(Mode.LIVE) == note(1, 32)


def test_servers_that_begin_at_once_name_the_place_once(url: str) -> None:
    """The database notes one name."""
    servers = [HeadStore(url) for _ in range(4)]
    assert servers[0].place() is None
    with ThreadPoolExecutor(len(servers)) as pool:
        names = [*pool.map(HeadStore.named_place, servers)]
    assert len({*names, servers[0].place()}) == 1


def test_objects_are_named_as_the_files_are(store: ObjectStore, url: str) -> None:
    """So a directory is moved into a store by copying it; the probe is of no interest."""
    heads = HeadStore(url)
    heads.named_place()
    for mode in Mode:
        heads.advance(mode, note(1, 1), None)
    named = {"live.checkpoint", "test.checkpoint", "place", "probe"}
    assert store.objects(url.rpartition("/")[2]) == named


def test_a_damaged_object_is_not_replaced(store: ObjectStore, url: str) -> None:
    """Only the operator can know its content, and names it."""
    heads = HeadStore(url)
    store.put(url.rpartition("/")[2], "live.checkpoint", b"no checkpoint")
    with pytest.raises(HeadUnavailable, match="cannot be read"):
        heads.read(Mode.LIVE)
    assert not heads.advance(Mode.LIVE, note(1, 6), None)
    assert heads.advance(Mode.LIVE, note(1, 6), heads.stored(Mode.LIVE))
    assert heads.read(Mode.LIVE) == note(1, 6)


@pytest.mark.parametrize("away", [ObjectStore.down, ObjectStore.frozen])
def test_an_unreachable_store_is_waited_for_once(
    store: ObjectStore, url: str, away: Callable[[ObjectStore], AbstractContextManager[None]]
) -> None:
    """Later callers are refused at once; when it is back, all continues unchanged."""
    heads = HeadStore(url)
    heads.advance(Mode.LIVE, note(1, 5), None)
    with away(store):
        began = time.monotonic()
        with pytest.raises(HeadUnavailable, match=r"Connection refused|no response within"):
            heads.advance(Mode.LIVE, note(1, 6), note(1, 5))
        assert time.monotonic() - began < 3
        for ask in (heads.check, heads.place, lambda: heads.read(Mode.LIVE)):
            began = time.monotonic()
            with pytest.raises(HeadUnavailable):
                ask()
            assert time.monotonic() - began < 1  # a store that is asked takes one and a half
    heads._away_until = 0.0  # the pause is over
    heads.check()
    assert heads.read(Mode.LIVE) in {note(1, 5), note(1, 6)}  # a request may have been carried out


def test_a_refusal_gives_the_reason_and_no_secret(store: ObjectStore) -> None:
    """The bucket is missing: that does not mean that nothing was published."""
    with pytest.raises(HeadUnavailable, match="404 Not Found, NoSuchBucket") as caught:
        HeadStore("s3://elsewhere/x").read(Mode.LIVE)
    assert store.environment["AWS_SECRET_ACCESS_KEY"] not in caught.value.message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_a_store_that_ignores_a_condition_is_refused(
    store: ObjectStore, url: str, header: str
) -> None:
    """Two servers would overwrite each other's heads, and the stored one could go backwards."""
    heads = HeadStore(url)
    with store.ignoring(header):
        for ask in (
            heads.check,
            heads.named_place,
            lambda: heads.advance(Mode.LIVE, note(1, 1), None),
        ):
            with pytest.raises(HeadsOverwritable, match="ignores the conditions"):
                ask()
    assert store.objects(url.rpartition("/")[2]) == {"probe"}
    assert heads.advance(Mode.LIVE, note(1, 1), None)


def test_a_url_that_its_variables_do_not_fit_is_a_mistake_of_the_settings(url: str) -> None:
    """Found at start, not when something is to be published."""
    with pytest.raises(InvalidConfiguration, match="az://account/container"):
        HeadStore("az://account/container/x")
