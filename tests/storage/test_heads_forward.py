"""Heads only go forward, in a directory and in an object store: whoever writes whatever, when.

Histories are random: servers and operators look, begin again, and write any checkpoint over what
they saw last; the stored one is damaged or lost. A plain dict holds the expected content, and two
numbers of each checkpoint are compared.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from countersign.base.errors import EvidenceRefused, HeadUnavailable
from countersign.base.values import Mode
from countersign.core.log.head_store import open_heads
from tests.storage.test_heads import note
from tests.support.depth import drawn
from tests.support.object_store import running_store

_NUMBERS: Final = count(1)
_DAMAGE: Final = b"no checkpoint"
servers, modes = st.integers(0, 2), st.sampled_from(Mode)


class Head(NamedTuple):
    """A checkpoint of the history."""

    epoch: int
    size: int
    host: str
    root: int

    def note(self, mode: Mode) -> bytes:
        return note(self.epoch, self.size, mode=mode, root=self.root, host=self.host)

    def follows(self, old: Head) -> bool:
        """In words: a later epoch, or the same log with more entries, or the same again."""
        if self.epoch > old.epoch or self == old:
            return True
        return (self.epoch, self.host) == (old.epoch, old.host) and self.size > old.size


heads = st.builds(
    Head, st.integers(1, 3), st.integers(0, 3), st.sampled_from(["a.example", "b.example"]),
    st.integers(0, 1),
)  # fmt: skip


class Walk(RuleBasedStateMachine):
    """Several processes at one place."""

    def __init__(self, place: Path | str) -> None:
        super().__init__()
        self.place = place
        self.servers = [open_heads(place) for _ in range(3)]
        self.seen: dict[tuple[int, Mode], Head | bytes | None] = {}
        self.kept: dict[Mode, Head | bytes | None] = dict.fromkeys(Mode)
        self.history: dict[Mode, list[tuple[int, int]]] = {mode: [] for mode in Mode}

    def put(self, name: str, content: bytes | None) -> None:
        """Put this there by hand; None: take it away."""
        raise NotImplementedError

    @rule(server=servers, mode=modes)
    def look(self, server: int, mode: Mode) -> None:
        self.seen[server, mode] = self.kept[mode]
        assert self.servers[server].stored(mode) == self._bytes(mode, self.kept[mode])

    @rule(server=servers, mode=modes, new=heads)
    def write(self, server: int, mode: Mode, new: Head) -> None:
        seen = self.seen.get((server, mode))
        over = self._bytes(mode, seen)
        if isinstance(seen, Head) and not new.follows(seen):
            with pytest.raises(EvidenceRefused):
                self.servers[server].advance(mode, new.note(mode), over)
            return
        done = self.servers[server].advance(mode, new.note(mode), over)
        assert done is (seen == self.kept[mode])
        if done:
            self.kept[mode] = new
            self.history[mode].append((new.epoch, new.size))

    @rule(server=servers, mode=modes, new=heads)
    def write_over_what_is_there(self, server: int, mode: Mode, new: Head) -> None:
        self.look(server, mode)
        self.write(server, mode, new)

    @rule(server=servers)
    def name(self, server: int) -> None:
        names = {self.servers[server].named_place(), *(one.place() for one in self.servers)}
        assert len(names) == 1

    @rule(server=servers)
    def start_again(self, server: int) -> None:
        self.servers[server] = open_heads(self.place)

    @rule(mode=modes, content=st.sampled_from([_DAMAGE, None]))
    def harm(self, mode: Mode, content: bytes | None) -> None:
        """No command: a disk, or a hand. The history is told anew."""
        self.put(f"{mode.value}.checkpoint", content)
        self.kept[mode], self.history[mode] = content, []

    @invariant()
    def readers_are_told(self) -> None:
        for mode, kept in self.kept.items():
            if isinstance(kept, bytes):
                with pytest.raises(HeadUnavailable):
                    self.servers[0].read(mode)
            else:
                assert self.servers[0].read(mode) == self._bytes(mode, kept)

    @invariant()
    def never_backwards(self) -> None:
        assert all(told == sorted(told) for told in self.history.values())

    def _bytes(self, mode: Mode, head: Head | bytes | None) -> bytes | None:
        return head.note(mode) if isinstance(head, Head) else head


def walk(here: type[Walk], examples: int) -> None:
    run_state_machine_as_test(
        here,
        settings=settings(max_examples=drawn(examples), stateful_step_count=30, deadline=None),
    )


def test_heads_in_a_directory_only_go_forward(tmp_path: Path) -> None:
    """What a checkpoint replaces is compared under the directory's lock."""

    class Here(Walk):
        def __init__(self) -> None:
            super().__init__(tmp_path / f"{next(_NUMBERS)}")

        def put(self, name: str, content: bytes | None) -> None:
            place = Path(self.place)
            place.mkdir(exist_ok=True)
            if content is None:
                (place / name).unlink(missing_ok=True)
            else:
                (place / name).write_bytes(content)

    walk(Here, 60)


def test_heads_in_an_object_store_only_go_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store itself compares, by conditions of the writes."""
    with running_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)

        class Here(Walk):
            def __init__(self) -> None:
                self.name_of_place = f"walk{next(_NUMBERS)}"
                super().__init__(store.url(self.name_of_place))

            def put(self, name: str, content: bytes | None) -> None:
                if content is not None:
                    store.put(self.name_of_place, name, content)
                elif name in store.objects(self.name_of_place):
                    store.delete(self.name_of_place, name)

        walk(Here, 15)
