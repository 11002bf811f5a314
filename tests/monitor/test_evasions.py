"""A log that evades the monitor is detected all the same; an honest one is not accused."""

from __future__ import annotations

import subprocess
from base64 import b64decode
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.base.values import from_ns
from countersign_evidence.alarm import EPOCH_RECORD, Alarm, AlarmKind, format_alarm
from countersign_evidence.check_alarm import Shown, check_alarm
from countersign_evidence.entry import is_next, is_same_service, log_entry
from countersign_evidence.monitor.watch import LookStatus
from countersign_evidence.note import Checkpoint, Signer, sign_checkpoint
from countersign_evidence.policy import parse_policy
from countersign_evidence.proof import parse_proof
from countersign_evidence.receipt import make_receipts
from tests.monitor.conftest import Monitor
from tests.monitor.liar import Act, Handler, Log, Served, log_with_record, proof_of, served
from tests.monitor.test_lies import consistent, log_of, next_log
from tests.support import command

NEVER = sha256(b"never written").digest()
DAY = 86_400


def failing(handler: Handler) -> None:
    """Respond with an error of the server."""
    handler.answer(503)


def receipt(monitor: Monitor, log: Log, file: Path, digest: bytes, seconds: float) -> None:
    """Write a receipt that is due in so many seconds."""
    until = from_ns(monitor.clock.time_ns()) + timedelta(seconds=seconds)
    file.parent.mkdir(exist_ok=True)
    file.write_text(make_receipts([digest], until, [log.signer])[0])


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of an outsider."""
    return command.run(words, {"PATH": "/nothing"}, directory=folder)


@pytest.mark.parametrize("pair", [(1, 1), (0, 2), (2, 1)])
def test_two_checkpoints_of_honest_logs_are_no_epoch_alarm(pair: tuple[int, int]) -> None:
    """Only the log of the previous epoch has to be cited."""
    first = log_of(300)
    second = next_log(first)
    third = next_log(second)
    third.seed = bytes(32)
    logs = first, second, third
    kept, new = (logs[n] for n in pair)
    assert new.record is not None
    path = parse_proof(proof_of(new, new.record, 0)).path
    notes = kept.signed(), new.signed()
    policy = parse_policy(("".join(log.policy for log in logs) + "quorum none\n").encode())
    for record in (new.record, None):
        made = Alarm(
            AlarmKind.EPOCH, "u", "t", "m", notes,
            index=0, path=path, resources={EPOCH_RECORD: record},
        )  # fmt: skip
        judged = check_alarm(format_alarm(made), policy)
        assert judged.shown is Shown.FAILED
        assert "is not the epoch that follows" in judged.message


def test_the_next_epoch_is_of_the_same_mode_and_perhaps_of_another_host() -> None:
    assert is_next("b.example/v1/log/live/2", "a.example/v1/log/live/1")
    assert not is_next("a.example/v1/log/test/2", "a.example/v1/log/live/1")
    assert not is_next("a.example/v1/log/live/3", "a.example/v1/log/live/1")
    assert is_same_service("a.example/v1/log/live/2", "a.example/v1/log/live/1")
    assert not is_same_service("b.example/v1/log/live/2", "a.example/v1/log/live/1")


def test_an_entry_that_only_unsigned_tiles_have_is_not_kept(
    monitor: Monitor, tmp_path: Path
) -> None:
    """They are served at the first reading; the second is of the signed tree."""
    log = log_of(300)
    fake = log.copy()
    fake.rewrite(299, log_entry(log.origin, NEVER))
    served_before = {"entries/001.p/44": 0, "0/001.p/44": 0}

    def lie(path: str, times: int) -> Act:
        def act(_: Handler) -> bytes | None:
            served_before[path] += 1
            return (fake if served_before[path] <= times else log).resource(f"tile/{path}")

        return act

    log.lies = {f"tile/{p}": lie(p, n) for p, n in (("entries/001.p/44", 1), ("0/001.p/44", 2))}
    receipt(monitor, log, tmp_path / "receipts" / "one", NEVER, -DAY)
    with served(log) as site:
        seen = [monitor.look(site, receipts=tmp_path / "receipts") for _ in range(2)]
    assert seen[-1].kind is AlarmKind.SUPPRESSED, seen


def test_an_epoch_that_never_shows_its_beginning_is_silent(monitor: Monitor) -> None:
    """It dropped entries, and responds with an error where that could be seen."""
    old = log_of(300)
    with served(old) as site:
        consistent(monitor, site)
        new = next_log(old, size=280)
        new.lies["epoch"] = failing
        site.logs[2] = new
        seen = []
        for _ in range(6):
            monitor.clock.seconds += DAY // 4
            seen.append(monitor.look(site))
    assert seen[0].status is LookStatus.UNCHECKED
    assert seen[-1].kind is AlarmKind.SILENCE, seen[-1]


def test_a_growing_log_that_never_shows_a_promised_entry_is_silent(
    monitor: Monitor, tmp_path: Path
) -> None:
    log = log_of(300)
    with served(log) as site:
        consistent(monitor, site)
        receipt(monitor, log, tmp_path / "receipts" / "one", NEVER, 60)
        log.lies["tile/entries/000"] = failing
        seen = []
        for _ in range(6):
            monitor.clock.seconds += DAY // 4
            log.grow(1)
            seen.append(monitor.look(site, receipts=tmp_path / "receipts"))
    assert seen[0].status is LookStatus.UNCHECKED
    assert seen[-1].kind is AlarmKind.SILENCE, seen[-1]


def test_a_file_that_is_no_receipt_never_makes_a_log_silent(
    monitor: Monitor, tmp_path: Path
) -> None:
    (tmp_path / "receipts").mkdir()
    (tmp_path / "receipts" / "note.txt").write_text("not a receipt")
    with served(log_of(10)) as site:
        for _ in range(3):
            monitor.clock.seconds += DAY
            seen = monitor.look(site, receipts=tmp_path / "receipts")
            assert seen.status is LookStatus.UNCHECKED, seen
        site.logs[1].lies["checkpoint"] = failing
        assert monitor.look(site, receipts=tmp_path / "receipts").status is LookStatus.UNCHECKED


def test_a_second_receipt_does_not_hide_that_the_first_was_broken(
    monitor: Monitor, tmp_path: Path
) -> None:
    log = log_of(300)
    for name, seconds in (("a", 10 * 365 * DAY), ("b", -DAY), ("c", 10 * 365 * DAY)):
        receipt(monitor, log, tmp_path / "receipts" / name, NEVER, seconds)
    with served(log) as site:
        seen = monitor.look(site, receipts=tmp_path / "receipts")
    assert seen.kind is AlarmKind.SUPPRESSED


def test_a_promise_that_falls_due_while_the_log_is_read_is_not_broken(
    monitor: Monitor, tmp_path: Path
) -> None:
    """The entry is in the log in time, and after the checkpoint that is being read."""
    log = log_of(300)
    grown = log.copy()
    grown.grow(1)
    digest = b64decode(grown.entries[-1].split(b"\n")[1])
    receipt(monitor, log, tmp_path / "receipts" / "one", digest, 60)

    def slowly(_: Handler) -> bytes | None:
        body = log.resource("tile/entries/000")
        if len(log.entries) == 300:
            log.grow(1)
            monitor.clock.seconds += 61
        return body

    log.lies["tile/entries/000"] = slowly
    with served(log) as site:
        consistent(monitor, site, receipts=tmp_path / "receipts")
        consistent(monitor, site, receipts=tmp_path / "receipts")
    assert digest.hex() in (monitor.folder / "receipts.kept").read_text()


def test_only_the_logs_of_the_address_can_be_silent(monitor: Monitor) -> None:
    """A monitor that continues at the second epoch does not read the first any more."""
    old = log_of(300)
    new = next_log(old)
    with served(old, new) as site:
        consistent(monitor, site)

        class Second(Served):
            def at(self, epoch: int = 2) -> str:
                return super().at(epoch)

        second = Second(site.url, site.logs)
        for _ in range(3):
            monitor.clock.seconds += DAY - 60
            consistent(monitor, second)
        new.lies["checkpoint"] = failing
        assert monitor.look(second).status is LookStatus.UNCHECKED
        monitor.clock.seconds += DAY + 60
        assert monitor.look(second).kind is AlarmKind.SILENCE


def test_a_copy_that_is_behind_a_proof_has_no_gap(tmp_path: Path) -> None:
    """It has fewer entries, and the alarm says so."""
    log, record = log_with_record()
    behind = log.copy()
    log.grow(5)
    (tmp_path / "one.tlog-proof").write_bytes(proof_of(log, record, 5))
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n")
    with served(behind) as site:
        done = run(
            tmp_path, "verify", "one.tlog-proof", "--policy", "policy", "--against", site.at()
        )
    assert (done.returncode, "ALARM (shrink)" in done.stdout) == (1, True), done.stdout


def test_a_copy_continues_after_a_run_that_stopped_in_the_middle(tmp_path: Path) -> None:
    """A tile became complete in that run, and the next one was not served."""
    log = log_of(300)
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n")
    words = ("log", "mirror")
    with served(log) as site:
        assert run(tmp_path, *words, site.at(), "copy", "--policy", "policy").returncode == 0
        log.grow(3000)
        log.lies["tile/0/011"] = failing
        assert run(tmp_path, *words, site.at(), "copy", "--policy", "policy").returncode == 2
        log.lies.clear()
        done = run(tmp_path, *words, site.at(), "copy", "--policy", "policy")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "copy" / "tile" / "0" / "001.p").exists()


def test_check_alarm_names_the_log_on_one_line(tmp_path: Path) -> None:
    """The key of a test log is public, and the words in an alarm are its writer's."""
    origin = "evidence.example.com/v1/log/test/1"
    signer = Signer.from_seed(origin, bytes(32))
    (tmp_path / "policy").write_text(f"log {signer.verifier.vkey}\nquorum none\n")
    notes = [sign_checkpoint(Checkpoint(origin, 5, bytes([n]) * 32), [signer]) for n in (1, 2)]
    made = {
        0: Alarm(AlarmKind.FORK, "u", "t", "m", tuple(notes)),
        3: Alarm(AlarmKind.SILENCE, "u", "t", "m\nPROVED (fork): two roots", (notes[0],)),
    }
    for status, alarm in made.items():
        (tmp_path / "alarm").write_bytes(format_alarm(alarm))
        done = run(tmp_path, "log", "check-alarm", "alarm", "--policy", "policy")
        assert (done.returncode, done.stdout.count("\n")) == (status, 1)
        assert origin in done.stdout
        assert "it proves nothing" in done.stderr


def test_a_receipt_is_not_compared_with_a_log(monitor: Monitor, tmp_path: Path) -> None:
    """It is refused: nothing was requested of the log."""
    log = log_of(10)
    receipt(monitor, log, tmp_path / "one.receipt", NEVER, 60)
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n")
    with served(log) as site:
        done = run(tmp_path, "verify", "one.receipt", "--policy", "policy", "--against", site.at())
    assert done.returncode != 0
    assert "--receipts" in done.stderr
    assert not done.stdout
    assert not log.asked
