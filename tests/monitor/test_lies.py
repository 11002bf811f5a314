"""Each possible lie of a log is detected, named, and proved by a file that others can check."""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64encode
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import copytree

import pytest

from countersign_evidence.alarm import Alarm, AlarmKind, format_alarm, parse_alarm
from countersign_evidence.check_alarm import Shown, check_alarm
from countersign_evidence.entry import log_entry
from countersign_evidence.key_history import KeyHistory, KeyRange, sign_history
from countersign_evidence.monitor.watch import LookStatus
from countersign_evidence.note import COSIGNATURE, Signer, Verifier, sign_checkpoint
from countersign_evidence.policy import parse_policy
from tests.monitor.conftest import NOT_AGAIN, Monitor
from tests.monitor.liar import OTHER_SEED, Act, Handler, Log, Served, entry, served

MANY = 256 * 256 + 300
"""Entries of a tree with tiles of three levels."""


def log_of(count: int, **fields: object) -> Log:
    """An honest log of so many entries."""
    log = Log(**fields)  # type: ignore[arg-type]
    log.grow(count)
    return log


@cache
def _many() -> Log:
    log = log_of(MANY)
    log.signed()
    return log


def many() -> Log:
    """A log with tiles of three levels; made once, since it takes its time."""
    return _many().copy()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the directory of a monitor that has read most of that log."""
    folder, log = tmp_path_factory.mktemp("begun"), many()
    log.size = 65_000
    with served(log) as site:
        consistent(Monitor(folder=folder), site)
    return folder


@pytest.fixture
def nearly(begun: Path, tmp_path: Path) -> Monitor:
    """Give a monitor that goes on from there."""
    copytree(begun, tmp_path / "state")
    return Monitor(folder=tmp_path / "state")


def alarm(
    monitor: Monitor, site: Served, kind: AlarmKind, shown: Shown, policy: str | None = None
) -> str:
    """Look, expect this alarm, and have its file checked; returns what the file proves."""
    seen = monitor.look(site, policy=policy)
    assert (seen.status, seen.kind) == (LookStatus.ALARM, kind), seen.message
    judged = monitor.judged(seen, site, policy=policy)
    assert judged.shown is shown, judged.message
    return judged.message


def consistent(monitor: Monitor, site: Served, **options: object) -> None:
    """Look, and find nothing wrong."""
    seen = monitor.look(site, **options)  # type: ignore[arg-type]
    assert seen.status is LookStatus.CONSISTENT, seen.message


@pytest.mark.parametrize("sizes", [(1,), (255, 256, 257, 512, 600), (1000, 1001, 3000)])
def test_an_honest_log_that_grows_is_consistent(monitor: Monitor, sizes: tuple[int, ...]) -> None:
    """At any sizes, over edges of tiles and within them."""
    log = Log()
    with served(log) as site:
        consistent(monitor, site)
        for size in sizes:
            log.grow(size - len(log.entries))
            consistent(monitor, site)
    assert not list((monitor.folder / "alarms").iterdir())


def test_only_new_data_is_read(monitor: Monitor) -> None:
    """A round on a log that has not grown takes one request, and those for rereading."""
    log = log_of(3000)
    with served(log) as site:
        consistent(monitor, site)
        log.asked.clear()
        consistent(monitor, site, again=NOT_AGAIN)
        assert log.asked == ["checkpoint"]
        log.grow(1)
        consistent(monitor, site, again=NOT_AGAIN)
    assert not [path for path in log.asked if path.startswith("tile/entries/00")]


@pytest.mark.parametrize("more", [0, 1, 300, 5000])
def test_a_log_that_changed_an_entry_has_forked(monitor: Monitor, more: int) -> None:
    """Two signed checkpoints prove it, whatever their sizes."""
    log = log_of(700)
    with served(log) as site:
        consistent(monitor, site)
        log.rewrite(3)
        log.grow(more)
        alarm(monitor, site, AlarmKind.FORK, Shown.PROVED)


def test_a_smaller_log_with_another_entry_has_forked(monitor: Monitor) -> None:
    """While the tiles of the larger one are still served, that is proved, not only seen."""
    log = log_of(700)
    with served(log) as site:
        consistent(monitor, site)
        other = log_of(500)
        other.rewrite(3)
        log.note = other.signed()
        alarm(monitor, site, AlarmKind.FORK, Shown.PROVED)


def test_a_log_that_serves_an_older_checkpoint_has_shrunk(monitor: Monitor) -> None:
    """Stale or cut off: both checkpoints are in the file, and when each was served is our word."""
    log = log_of(700)
    with served(log) as site:
        consistent(monitor, site)
        log.size = 699
        said = alarm(monitor, site, AlarmKind.SHRINK, Shown.OBSERVED)
    assert said == "after 700 entries, 699 were served"


def test_a_lagging_server_is_asked_again(monitor: Monitor) -> None:
    """One of several servers may not have the newest checkpoint yet."""
    log = log_of(700)
    with served(log) as site:
        consistent(monitor, site)
        stale = [log.signed(650), log.signed(680)]
        log.lies["checkpoint"] = lambda _: stale.pop(0) if stale else log.signed()
        consistent(monitor, site)


@pytest.mark.parametrize(
    "path",
    [
        "entries/254",
        "entries/257.p/44",
        "0/254",
        "0/257.p/44",
        "1/000",
        "1/001.p/1",
        "2/000.p/1",
    ],
)
@pytest.mark.parametrize("how", ["half", "other", "longer", "empty"])
def test_bytes_outside_the_signed_tree_are_proved_to_be_outside(
    nearly: Monitor, path: str, how: str
) -> None:
    """Each level, complete and not; half-written, changed, too long, nothing."""
    log = many()
    good = log.resource(f"tile/{path}") or b""
    assert good
    other = good[:-3] + (b"A" if good[-3:-2] != b"A" else b"E") + good[-2:]
    bad = {"half": good[: len(good) // 2], "other": other, "longer": good + good, "empty": b""}
    log.lies[f"tile/{path}"] = bad[how]
    with served(log) as site:
        alarm(nearly, site, AlarmKind.UNBACKED, Shown.OBSERVED)
        log.lies.clear()
        consistent(nearly, site)


@pytest.mark.parametrize("path", ["entries/254", "0/257.p/44", "1/000", "2/000.p/1"])
def test_missing_resources_are_a_gap(nearly: Monitor, path: str) -> None:
    """The checkpoint covers it, so it has to be there."""
    log = many()
    log.lies[f"tile/{path}"] = None
    with served(log) as site:
        assert alarm(nearly, site, AlarmKind.GAP, Shown.OBSERVED) == f"not served: tile/{path}"


def test_a_partial_tile_may_be_gone_once_the_complete_one_is_there(monitor: Monitor) -> None:
    """As the specification of tiles allows."""
    log = log_of(600)
    log.size = 500
    for path in ("entries/001.p/244", "0/001.p/244"):
        log.lies[f"tile/{path}"] = None
    with served(log) as site:
        consistent(monitor, site)


def test_a_malformed_entry_is_proved_by_the_log_itself(monitor: Monitor) -> None:
    """Its hash is in the signed tree."""
    log = log_of(700)
    log.rewrite(300, b"a note of the operator to himself\n")
    with served(log) as site:
        said = alarm(monitor, site, AlarmKind.ENTRY, Shown.PROVED)
    assert said.startswith("entry 300 ")


def test_a_checkpoint_by_another_key_is_an_alarm(monitor: Monitor) -> None:
    """In the name of the log, and by none of the keys of the policy."""
    log = log_of(10)
    with served(log) as site:
        policy = monitor.policy(site)
        consistent(monitor, site, policy=policy)
        log.seed = OTHER_SEED
        alarm(monitor, site, AlarmKind.KEY, Shown.OBSERVED, policy)


@pytest.mark.parametrize("by_old", [True, False])
def test_a_later_key_counts_if_the_known_one_names_it(monitor: Monitor, by_old: bool) -> None:
    """In a history signed by the known key; one by the other key alone proves nothing."""
    log = log_of(10)
    with served(log) as site:
        policy = monitor.policy(site)
        old = log.signer
        consistent(monitor, site, policy=policy)
        log.seed = OTHER_SEED
        log.grow(5)
        ranges = (KeyRange(0, 12, old.verifier), KeyRange(13, None, log.signer.verifier))
        signers = [old, log.signer] if by_old else [log.signer]
        log.keys = sign_history(KeyHistory(log.origin, ranges), signers)
        if by_old:
            consistent(monitor, site, policy=policy)
            log.note = log.signed(12)
        alarm(monitor, site, AlarmKind.KEY, Shown.OBSERVED, policy)


def test_a_key_of_an_unknown_kind_is_not_an_alarm(monitor: Monitor) -> None:
    """It is what this program cannot check."""
    log = log_of(10)
    key = log.signer.verifier
    odd = Verifier(key.name, 0x77, key.public_key)
    note = log.signed().decode()
    line = f"\u2014 {log.origin} "
    log.note = note.replace(
        note[note.index(line) :],
        line + b64encode(odd.key_id + b"x" * 64).decode() + "\n",
    ).encode()
    with served(log) as site:
        seen = monitor.look(site, policy=f"log {odd.vkey}\nquorum none\n")
    assert seen.status is LookStatus.UNCHECKED
    assert "unknown kind of key" in seen.message


def test_too_few_witnesses_are_an_alarm(monitor: Monitor) -> None:
    """The policy asks for one, and none cosigned."""
    log = log_of(10)
    key = Signer.from_seed("w.example", OTHER_SEED).verifier.public_key
    witness = Verifier("w.example", COSIGNATURE, key)
    with served(log) as site:
        policy = f"{log.policy}witness w {witness.vkey}\nquorum w\n"
        alarm(monitor, site, AlarmKind.QUORUM, Shown.OBSERVED, policy)


def test_a_log_of_another_name_is_not_the_watched_one(monitor: Monitor) -> None:
    """Also if the policy names it."""
    log, other = log_of(10), log_of(20, epoch=7, seed=OTHER_SEED)
    with served(log, other) as site:
        consistent(monitor, site)
        log.note = other.signed()
        alarm(monitor, site, AlarmKind.REPLACED, Shown.OBSERVED)


def test_a_log_that_the_policy_does_not_name_cannot_be_checked(monitor: Monitor) -> None:
    """The address or the policy is wrong: that is no alarm."""
    log = log_of(10)
    with served(log) as site:
        seen = monitor.look(site, policy=f"{Log(epoch=3).policy}quorum none\n")
    assert seen.status is LookStatus.UNCHECKED
    assert "names no log" in seen.message


def slowly(handler: Handler) -> None:
    """A byte, and then nothing."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.wfile.flush()
    time.sleep(1)
    handler.close_connection = True


def cut(handler: Handler) -> None:
    """Less than was announced."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.close_connection = True


def endless(handler: Handler) -> None:
    """Endless data, for as long as it is read."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(bytes(1 << 20))
    except OSError:
        handler.close_connection = True


def elsewhere(handler: Handler) -> None:
    """A redirect, to an address inside."""
    handler.answer(302, Location="http://127.0.0.1:1/secret")


def squeezed(handler: Handler) -> None:
    """A few bytes that become many."""
    handler.answer(200, gzip.compress(bytes(50_000_000)), Content_Encoding="gzip")


def failing(handler: Handler) -> None:
    """An error of the server."""
    handler.answer(503)


@pytest.mark.parametrize("act", [slowly, cut, elsewhere, squeezed, failing])
@pytest.mark.parametrize("path", ["checkpoint", "tile/0/000"])
def test_a_log_that_does_not_respond_is_not_accused(monitor: Monitor, act: Act, path: str) -> None:
    """It could not be checked; the saved state stays."""
    log = log_of(300)
    log.lies[path] = act
    with served(log) as site:
        seen = monitor.look(site, seconds=0.3)
        assert seen.status is LookStatus.UNCHECKED, seen.message
        assert str(site.at()) in seen.message
        log.lies.clear()
        consistent(monitor, site)


def test_an_endless_checkpoint_is_read_to_the_limit_and_no_further(monitor: Monitor) -> None:
    """Memory is bounded, whatever is sent."""
    log = log_of(300)
    log.lies["checkpoint"] = endless
    with served(log) as site:
        seen = monitor.look(site)
    assert seen.status is LookStatus.UNCHECKED
    assert "is not a checkpoint" in seen.message


def test_an_endless_tile_is_an_alarm(monitor: Monitor) -> None:
    """Its bytes do not belong at that path, and the first excess byte shows it."""
    log = log_of(300)
    log.lies["tile/0/000"] = endless
    with served(log) as site:
        alarm(monitor, site, AlarmKind.UNBACKED, Shown.OBSERVED)


def test_a_log_that_is_silent_for_too_long_is_an_alarm(monitor: Monitor) -> None:
    """Until then it is not; the file has the last checkpoint that was good."""
    log = log_of(300)
    with served(log) as site:
        consistent(monitor, site)
        log.lies["checkpoint"] = failing
        monitor.clock.seconds += 3600
        assert monitor.look(site).status is LookStatus.UNCHECKED
        monitor.clock.seconds += 24 * 3600
        said = alarm(monitor, site, AlarmKind.SILENCE, Shown.OBSERVED)
        assert "could not be checked for 1 day, 1:00:" in said


def test_a_log_without_growth_is_an_alarm_only_on_request(monitor: Monitor) -> None:
    """A shop may sell nothing for a week; a log that grows for others may be hidden from us."""
    log = log_of(300)
    week = timedelta(days=7)
    with served(log) as site:
        consistent(monitor, site)
        monitor.clock.seconds += 8 * 24 * 3600
        consistent(monitor, site)
        seen = monitor.look(site, frozen=week)
        assert seen.kind is AlarmKind.SILENCE
        assert monitor.judged(seen, site).shown is Shown.OBSERVED
        log.grow(1)
        consistent(monitor, site, frozen=week)


def next_log(old: Log, *, size: int | None = None, root: bytes | None = None) -> Log:
    """The log that continues another one, with its first record."""
    head = old.checkpoint(size)
    record = {
        "id": "rec_x",
        "previous_log": head.origin,
        "previous_published": old.signed(size).decode(),
        "previous_root": (root or head.root).hex(),
        "previous_size": head.size,
        "type": "epoch",
    }
    log = Log(epoch=old.epoch + 1, seed=OTHER_SEED)
    log.record = json.dumps(record).encode()
    log.entries = [log_entry(log.origin, sha256(log.record).digest())]
    log.grow(5)
    return log


def test_an_honest_new_epoch_is_followed(monitor: Monitor) -> None:
    """Its first record cites the old log's signed head; the old log is still watched."""
    old = log_of(300)
    with served(old) as site:
        consistent(monitor, site)
        site.logs[2] = next_log(old)
        consistent(monitor, site)
        site.logs[2].grow(300)
        consistent(monitor, site)
        old.rewrite(7)
        old.grow(1)
        alarm(monitor, site, AlarmKind.FORK, Shown.PROVED)


def test_a_new_epoch_that_leaves_out_signed_entries_proves_it_itself(monitor: Monitor) -> None:
    """The saved checkpoint is larger than the one that the first record cites."""
    old = log_of(300)
    with served(old) as site:
        consistent(monitor, site)
        site.logs[2] = next_log(old, size=280)
        said = alarm(monitor, site, AlarmKind.EPOCH, Shown.PROVED)
    assert "cites 280 entries" in said


def test_a_new_epoch_that_cites_another_root_proves_it_itself(monitor: Monitor) -> None:
    """Of the size that was signed."""
    old = log_of(300)
    with served(old) as site:
        consistent(monitor, site)
        site.logs[2] = next_log(old, root=bytes(32))
        alarm(monitor, site, AlarmKind.EPOCH, Shown.PROVED)


@pytest.mark.parametrize("shown", [None, b'{"type":"epoch"}'])
def test_a_new_epoch_that_hides_its_first_record_is_an_alarm(
    monitor: Monitor, shown: bytes | None
) -> None:
    """Without it no one sees which log it continues."""
    old = log_of(300)
    with served(old) as site:
        site.logs[2] = next_log(old)
        site.logs[2].record = shown
        alarm(monitor, site, AlarmKind.EPOCH, Shown.OBSERVED)


def test_a_new_epoch_with_an_unknown_key_cannot_be_checked(monitor: Monitor) -> None:
    """Get the present policy from the operator; the old log was checked all the same."""
    old = log_of(300)
    with served(old) as site:
        site.logs[2] = next_log(old)
        seen = monitor.look(site, policy=f"{old.policy}quorum none\n")
    assert seen.status is LookStatus.UNCHECKED
    assert "get the operator's present policy" in seen.message


def test_the_same_alarm_is_written_once(monitor: Monitor) -> None:
    """As often as cron looks; it stays an alarm."""
    log = log_of(700)
    with served(log) as site:
        consistent(monitor, site)
        log.rewrite(3)
        first = monitor.look(site)
        monitor.clock.seconds += 60
        again = monitor.look(site)
    assert first.alarm_file == again.alarm_file
    assert again.status is LookStatus.ALARM
    assert len(list((monitor.folder / "alarms").iterdir())) == 1


def test_a_changed_file_of_an_alarm_proves_nothing(monitor: Monitor) -> None:
    """Each byte of a fork's file: it is not proved any more, or says the same of another moment."""
    log = log_of(70)
    with served(log) as site:
        consistent(monitor, site)
        log.rewrite(3)
        log.grow(3)
        seen = monitor.look(site)
        assert seen.alarm_file
        data = seen.alarm_file.read_bytes()
        policy = parse_policy(monitor.policy(site).encode())
    alarm_ = parse_alarm(data)
    words = {data.index(alarm_.url.encode()) + i for i in range(len(alarm_.url))}
    words |= {data.index(alarm_.message.encode()) + i for i in range(len(alarm_.message))}
    words |= {data.index(alarm_.observed_at.encode()) + i for i in range(20)}
    for at in range(len(data)):
        if at in words:
            continue
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        # With another id, a signature is by a key that the reader does not know.
        assert check_alarm(changed, policy).shown in {Shown.FAILED, Shown.UNCHECKED}, at
    assert format_alarm(alarm_) == data


def test_an_honest_log_cannot_be_accused(monitor: Monitor) -> None:
    """Files that somebody makes up against it show nothing."""
    log, other = log_of(300), log_of(400)
    with served(log) as site:
        policy = parse_policy(monitor.policy(site).encode())
    fork = Alarm(AlarmKind.FORK, "u", "t", "m", (log.signed(), other.signed()))
    forged = sign_checkpoint(other.checkpoint(), [Log(seed=OTHER_SEED).signer])
    made_up = [
        fork,
        Alarm(AlarmKind.SHRINK, "u", "t", "m", (log.signed(200), log.signed(300))),
        Alarm(AlarmKind.UNBACKED, "u", "t", "m", (log.signed(),), resources={}),
        Alarm(
            AlarmKind.UNBACKED,
            "u",
            "t",
            "m",
            (log.signed(),),
            resources={"0/000": log.resource("tile/0/000")},
        ),
        Alarm(AlarmKind.GAP, "u", "t", "m", (log.signed(),), resources={"0/002": None}),
        Alarm(AlarmKind.ENTRY, "u", "t", "m", (log.signed(),), index=3, resources={"entry": b"x"}),
        Alarm(
            AlarmKind.ENTRY,
            "u",
            "t",
            "m",
            (log.signed(1),),
            index=0,
            resources={"entry": entry(0)},
        ),
        Alarm(AlarmKind.KEY, "u", "t", "m", (log.signed(),)),
        Alarm(AlarmKind.QUORUM, "u", "t", "m", (log.signed(),)),
        Alarm(AlarmKind.REPLACED, "u", "t", "m", (log.signed(), log.signed(1))),
    ]
    for alarm_ in made_up:
        assert check_alarm(format_alarm(alarm_), policy).shown is Shown.FAILED, alarm_.kind
    by_another = Alarm(AlarmKind.FORK, "u", "t", "m", (log.signed(), forged))
    assert check_alarm(format_alarm(by_another), policy).shown is Shown.UNCHECKED
