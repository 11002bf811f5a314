"""The last published checkpoint, kept in an object store: a real S3 endpoint on the loopback."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import count
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from countersign.base.errors import HeadUnavailable, InvalidConfiguration
from countersign.base.values import Mode
from countersign.core.log.head_store import HeadStore
from countersign_evidence.note import checkpoint_of
from tests.storage.test_heads import note
from tests.support.depth import drawn
from tests.support.object_store import BUCKET, ObjectStore, running_store

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
        heads.replace(Mode.LIVE, kept, None)
    assert other.read(Mode.LIVE) == kept
    assert heads.advance(Mode.LIVE, note(1, 6), kept)
    assert heads.read(Mode.LIVE) == other.read(Mode.LIVE) == note(1, 6)
    assert heads.read(Mode.TEST) is None


@pytest.mark.parametrize("kept", [None, note(1, 4), note(1, 7), note(2, 0)])
def test_another_servers_later_head_stays(url: str, kept: bytes | None) -> None:
    """Even if this one has read before that: the store itself compares."""
    heads, other = HeadStore(url), HeadStore(url)
    heads.replace(Mode.LIVE, note(1, 5), None)
    assert heads.read(Mode.LIVE) == note(1, 5)
    if kept is None:
        return
    assert other.replace(Mode.LIVE, kept, other.published(Mode.LIVE))
    assert not heads.advance(Mode.LIVE, note(1, 6), note(1, 5))
    assert heads.read(Mode.LIVE) == kept
    assert not HeadStore(url).advance(Mode.LIVE, note(1, 6), None)


def test_an_operator_replaces_only_the_head_decided_about(url: str) -> None:
    """A head that another server published after the operator looked stays."""
    heads, other = HeadStore(url), HeadStore(url)
    assert heads.replace(Mode.LIVE, note(1, 5), None)
    seen = heads.published(Mode.LIVE)
    assert other.advance(Mode.LIVE, note(1, 6), note(1, 5))
    assert not heads.replace(Mode.LIVE, note(1, 0), seen)
    assert not heads.replace(Mode.LIVE, note(1, 0), None)
    assert heads.read(Mode.LIVE) == note(1, 6)


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
    """So a directory is moved into a store by copying it."""
    heads = HeadStore(url)
    heads.named_place()
    for mode in Mode:
        heads.replace(mode, note(1, 1), None)
    named = {"live.checkpoint", "test.checkpoint", "place"}
    assert store.objects(url.rpartition("/")[2]) == named


def test_a_damaged_object_is_not_replaced(store: ObjectStore, url: str) -> None:
    """Only the operator can know its content, and decides."""
    heads = HeadStore(url)
    store.put(url.rpartition("/")[2], "live.checkpoint", b"no checkpoint")
    with pytest.raises(HeadUnavailable, match="cannot be read"):
        heads.read(Mode.LIVE)
    assert not heads.advance(Mode.LIVE, note(1, 6), None)
    assert heads.replace(Mode.LIVE, note(1, 6), None)
    assert heads.read(Mode.LIVE) == note(1, 6)


@pytest.mark.parametrize("away", [ObjectStore.down, ObjectStore.frozen])
def test_an_unreachable_store_is_waited_for_once(
    store: ObjectStore, url: str, away: Callable[[ObjectStore], AbstractContextManager[None]]
) -> None:
    """Later callers are refused at once; when it is back, all continues unchanged."""
    heads = HeadStore(url)
    heads.replace(Mode.LIVE, note(1, 5), None)
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


def test_a_store_that_ignores_conditions_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers would overwrite each other's heads, and the stored one could go backwards."""
    heads = HeadStore(url)
    write = heads._write
    monkeypatch.setattr(heads, "_write", lambda name, data, _: write(name, data, "overwrite"))
    with pytest.raises(HeadUnavailable, match="ignores the conditions"):
        heads.advance(Mode.LIVE, note(1, 1), None)
    assert heads.read(Mode.LIVE) is None


def test_a_url_that_its_variables_do_not_fit_is_a_mistake_of_the_settings(url: str) -> None:
    """Found at start, not when something is to be published."""
    with pytest.raises(InvalidConfiguration, match="az://account/container"):
        HeadStore("az://account/container/x")


class Walk(RuleBasedStateMachine):
    """Servers read, compare and keep in any order; a plain dict holds the expected content."""

    place: str

    def __init__(self) -> None:
        super().__init__()
        self.url = f"{self.place}/{next(_PLACES)}"
        self.servers = [HeadStore(self.url) for _ in range(3)]
        self.read: dict[tuple[int, Mode], bytes | None] = {}
        self.kept: dict[Mode, bytes] = {}
        self.sizes: dict[Mode, list[int]] = {mode: [0] for mode in Mode}

    @rule(server=st.integers(0, 2), mode=st.sampled_from(Mode))
    def look(self, server: int, mode: Mode) -> None:
        self.read[server, mode] = self.servers[server].read(mode)
        assert self.read[server, mode] == self.kept.get(mode)

    @rule(server=st.integers(0, 2), mode=st.sampled_from(Mode), more=st.integers(1, 3))
    def publish(self, server: int, mode: Mode, more: int) -> None:
        over = self.read.get((server, mode))
        size = more + (0 if over is None else checkpoint_of(over).size)
        done = self.servers[server].advance(mode, note(1, size), over)
        assert done is (over == self.kept.get(mode))
        if done:
            self.kept[mode] = note(1, size)
            self.sizes[mode].append(size)

    @rule(server=st.integers(0, 2))
    def start_again(self, server: int) -> None:
        self.servers[server] = HeadStore(self.url)

    @invariant()
    def never_backwards(self) -> None:
        assert all(sizes == sorted(set(sizes)) for sizes in self.sizes.values())


def test_the_head_never_goes_backwards(store: ObjectStore) -> None:
    class Here(Walk):
        place = f"s3://{BUCKET}/walk"

    run_state_machine_as_test(
        Here, settings=settings(max_examples=drawn(10), stateful_step_count=20, deadline=None)
    )
