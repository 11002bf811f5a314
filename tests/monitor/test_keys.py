"""A log whose key has changed is judged by people who know one key, and not by a thief's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.base.values import from_ns
from countersign_evidence.alarm import AlarmKind, format_alarm, of_log, parse_alarm
from countersign_evidence.check_alarm import Shown, check_alarm
from countersign_evidence.key_history import KeyHistory, KeyRange, sign_history
from countersign_evidence.monitor.watch import LookStatus
from countersign_evidence.note import MLDSA_COSIGNATURE, SignatureLine, Signer
from countersign_evidence.policy import Policy, parse_policy
from countersign_evidence.receipt import make_receipts
from tests.monitor.conftest import Monitor
from tests.monitor.liar import OTHER_SEED, Handler, Log, served
from tests.monitor.test_lies import consistent, log_of
from tests.support import command

THIEFS_SEED = bytes(range(2, 34))
OLD, NEW = log_of(0).signer, log_of(0, seed=OTHER_SEED).signer
THIEF = log_of(0, seed=THIEFS_SEED).signer


def keyed(*signers: Signer) -> Policy:
    """A policy that names only these keys of the log."""
    lines = "".join(f"log {signer.verifier.vkey}\n" for signer in signers)
    return parse_policy(f"{lines}quorum none\n".encode())


def words(policy: Policy) -> str:
    return "".join(f"log {key.vkey}\n" for key in policy.logs) + "quorum none\n"


def named(*ranges: tuple[int, int | None, Signer], by: tuple[Signer, ...]) -> bytes:
    """A signed history."""
    found = tuple(KeyRange(a, b, signer.verifier) for a, b, signer in ranges)
    return sign_history(KeyHistory(OLD.verifier.name, found), by)


HISTORY = named((0, 12, OLD), (13, None, NEW), by=(NEW, OLD))


def rotate(log: Log) -> None:
    """The old key has signed up to 12; from 13 on only the new one signs."""
    log.seed = OTHER_SEED
    log.keys = HISTORY
    log.grow(5)


def failing(handler: Handler) -> None:
    handler.answer(503)


@pytest.mark.parametrize("known", [OLD, NEW])
def test_a_fork_over_a_rotation_is_proved_to_readers_with_one_key(
    monitor: Monitor, known: Signer
) -> None:
    """The file has the history; the kept checkpoint is by the old key, the other by the new."""
    log, policy = log_of(10), keyed(OLD)
    with served(log) as site:
        consistent(monitor, site, policy=words(policy))
        rotate(log)
        consistent(monitor, site, policy=words(policy))
        log.rewrite(3)
        log.grow(1)
        seen = monitor.look(site, policy=words(policy))
    assert seen.alarm_file
    data = seen.alarm_file.read_bytes()
    assert check_alarm(data, keyed(known)).shown is Shown.PROVED
    assert check_alarm(data, keyed(THIEF)).shown is Shown.UNCHECKED
    alarm = parse_alarm(data)
    assert alarm.resources == {of_log(log.origin): HISTORY}
    bare = format_alarm(replace(alarm, resources={}))
    assert check_alarm(bare, keyed(OLD)).shown is Shown.UNCHECKED, "not failed: it may be the log's"
    assert check_alarm(bare, keyed(known), [HISTORY]).shown is Shown.PROVED


@pytest.mark.parametrize(("known", "by"), [(OLD, NEW), (NEW, OLD)])
def test_a_promise_by_a_key_that_the_policy_does_not_name_is_judged_too(
    monitor: Monitor, tmp_path: Path, known: Signer, by: Signer
) -> None:
    """The monitor learns the key from the log; who checks the file, from the file."""
    log, folder, policy = log_of(10), tmp_path / "receipts", keyed(known)
    rotate(log)
    folder.mkdir()
    due = from_ns(monitor.clock.time_ns()) - timedelta(seconds=1)
    for name in (b"3", b"never written"):
        (receipt,) = make_receipts([sha256(name).digest()], due, [by])
        (folder / sha256(name).hexdigest()).write_text(receipt)
    with served(log) as site:
        seen = monitor.look(site, policy=words(policy), receipts=folder)
    assert seen.kind is AlarmKind.SUPPRESSED, seen.message
    assert sha256(b"never written").hexdigest() in seen.message, "the other promise was kept"
    assert seen.alarm_file
    assert check_alarm(seen.alarm_file.read_bytes(), policy).shown is Shown.OBSERVED


def test_a_history_that_a_thief_of_the_old_key_signs_adds_no_key(monitor: Monitor) -> None:
    """For readers who kept the true one; the file of the alarm shows both."""
    log, policy = log_of(10), keyed(OLD)
    with served(log) as site:
        rotate(log)
        consistent(monitor, site, policy=words(policy))
        log.seed = THIEFS_SEED
        log.keys = named((0, 12, OLD), (13, None, THIEF), by=(THIEF, OLD))
        log.grow(1)
        seen = monitor.look(site, policy=words(policy))
    assert seen.kind is AlarmKind.KEY, seen.message
    assert seen.alarm_file
    data = seen.alarm_file.read_bytes()
    assert check_alarm(data, policy).shown is Shown.OBSERVED
    assert parse_alarm(data).resources == {of_log(log.origin): HISTORY, "keys": log.keys}


def test_a_log_is_not_accused_of_a_key_that_it_has_named(monitor: Monitor) -> None:
    """The history stands in the file, or may have been left out of it."""
    log = log_of(10)
    with served(log) as site:
        consistent(monitor, site, policy=words(keyed(OLD)))
        rotate(log)
        log.keys = None
        seen = monitor.look(site, policy=words(keyed(OLD)))
    assert seen.kind is AlarmKind.KEY
    assert seen.alarm_file
    alarm = parse_alarm(seen.alarm_file.read_bytes())
    assert alarm.resources == {"keys": None}
    for resources, shown in (
        ({"keys": None}, Shown.OBSERVED),
        ({"keys": HISTORY}, Shown.FAILED),
        ({}, Shown.UNCHECKED),
    ):
        file = format_alarm(replace(alarm, resources=resources))
        assert check_alarm(file, keyed(OLD)).shown is shown
        assert check_alarm(file, keyed(OLD), [HISTORY]).shown is Shown.FAILED


def test_an_unreadable_history_matters_only_if_it_is_needed(monitor: Monitor) -> None:
    """While a known key signs, no history is needed; later it would be."""
    log, policy = log_of(10), words(keyed(OLD))
    log.lies["keys"] = failing
    with served(log) as site:
        consistent(monitor, site, policy=policy)
        rotate(log)
        assert monitor.look(site, policy=policy).status is LookStatus.UNCHECKED
        log.lies.clear()
        consistent(monitor, site, policy=policy)


def test_a_new_key_is_learned_while_the_old_one_signs_too(monitor: Monitor) -> None:
    """Once: the history is not requested again while it lists all that sign."""
    log, policy = log_of(10), words(keyed(OLD))
    with served(log) as site:
        consistent(monitor, site, policy=policy)
        log.grow(5)
        log.note = log.signed() + NEW.sign(log.signed().partition(b"\n\n")[0] + b"\n")
        log.keys = HISTORY
        for asked in (1, 0):
            log.asked.clear()
            consistent(monitor, site, policy=policy)
            assert log.asked.count("keys") == asked
        log.note, log.seed = None, OTHER_SEED
        log.keys = None
        log.grow(1)
        consistent(monitor, site, policy=policy)


def test_the_commands_take_the_history_of_a_log(tmp_path: Path) -> None:
    """For a receipt by a later key, which alone is neither right nor wrong."""
    (receipt,) = make_receipts([bytes(32)], from_ns(0), [NEW])
    for name, data in (
        ("receipt", receipt.encode()),
        ("history", HISTORY),
        ("policy", words(keyed(OLD)).encode()),
    ):
        (tmp_path / name).write_bytes(data)
    check = ("verify", "receipt", "--policy", "policy")
    for more, status in (((), 2), (("--key-history", "history"), 0)):
        done = command.run((*check, *more), {"PATH": "/nothing"}, directory=tmp_path)
        assert done.returncode == status, done.stdout + done.stderr
        assert done.stdout.startswith("OK" if status == 0 else "COULD NOT BE CHECKED")


def test_a_fork_is_proved_although_the_range_of_the_key_ended_earlier(
    monitor: Monitor,
) -> None:
    """The file has the earlier known history and the served one."""
    log, policy = log_of(10), keyed(OLD)
    with served(log) as site:
        rotate(log)
        consistent(monitor, site, policy=words(policy))
        log.rewrite(3)
        log.seed = THIEFS_SEED
        log.keys = named((0, 12, OLD), (13, 14, NEW), (15, None, THIEF), by=(THIEF, NEW, OLD))
        log.grow(6)
        seen = monitor.look(site, policy=words(policy))
    assert seen.kind is AlarmKind.FORK, seen.message
    assert seen.alarm_file
    data = seen.alarm_file.read_bytes()
    alarm = parse_alarm(data)
    assert alarm.resources == {of_log(log.origin): HISTORY, "keys": log.keys}
    assert check_alarm(data, policy).shown is Shown.PROVED
    # An extra file with a name that sorts first or last does not replace them.
    short = named((0, 12, OLD), (13, 13, NEW), (14, None, THIEF), by=(THIEF, NEW, OLD))
    for name in ("keys/", of_log("other.example/v1/log/live/1"), of_log("zzz")):
        added = replace(alarm, resources={**alarm.resources, name: short})
        assert check_alarm(format_alarm(added), policy).shown is Shown.PROVED


def test_a_wrong_signature_next_to_a_good_one_does_not_weaken_an_accusation(
    monitor: Monitor,
) -> None:
    """Anyone can append one, under the name of a key that the reader knows too."""
    log = log_of(10)
    with served(log) as site:
        consistent(monitor, site, policy=words(keyed(OLD)))
        log.rewrite(3)
        log.grow(1)
        seen = monitor.look(site, policy=words(keyed(OLD)))
    assert seen.alarm_file
    alarm = parse_alarm(seen.alarm_file.read_bytes())
    wrong = SignatureLine(NEW.verifier.name, NEW.verifier.key_id, bytes(64)).text()
    notes = tuple(note + wrong for note in alarm.checkpoints)
    data = format_alarm(replace(alarm, checkpoints=notes))
    assert check_alarm(data, keyed(OLD, NEW)).shown is Shown.PROVED


def test_a_policy_that_cannot_follow_the_keys_accuses_no_log(monitor: Monitor) -> None:
    """Only Ed25519 keys sign a history: with another kind alone, a new key is not an alarm."""
    log = log_of(10)
    post_quantum = Signer.from_seed(log.origin, bytes(32), MLDSA_COSIGNATURE)
    policy = f"log {post_quantum.verifier.vkey}\nquorum none\n"
    rotate(log)
    with served(log) as site:
        assert monitor.look(site, policy=policy).status is LookStatus.UNCHECKED
