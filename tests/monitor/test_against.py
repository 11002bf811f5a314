"""A stored proof, and a stopped copy, against the log of today."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from countersign_evidence.dossier import write_dossier
from countersign_evidence.entry import log_entry
from tests.docs.markdown import ROOT, read
from tests.evidence.dossier_vectors import LIVE, load_maker
from tests.monitor.liar import Log, proof_of, served
from tests.support import command, forked

pytestmark = pytest.mark.long


MAKER = load_maker()


class Vectors(Log):
    """The log of the dossier that is a vector."""

    origin = MAKER.LIVE

    def grow(self, count: int, salt: str = "") -> None:
        """Append entries."""
        names = [f"{salt}{n}".encode() for n in range(count)]
        self.entries += [log_entry(self.origin, sha256(name).digest()) for name in names]


def of_the_dossier() -> Log:
    """It has the records of the order, and may grow."""
    log = Vectors(seed=MAKER.LIVE_SEED)
    records = (*(record.body for record in MAKER.live_order()), *MAKER.FILLERS)
    log.entries = MAKER.LOG.Log(records, origin=MAKER.LIVE).entries
    return log


def test_every_record_of_a_dossier_is_looked_up_in_the_log_of_today(tmp_path: Path) -> None:
    """All are still there, many entries later; a record changed since then is an alarm."""
    log = of_the_dossier()
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n", encoding="utf-8")
    words = ("verify", str(LIVE), "--policy", "policy", "--json", "--against")
    with served(log) as site:
        log.grow(700)
        done = command.run((*words, site.at()), {"PATH": "/nothing"}, directory=tmp_path)
        said = json.loads(done.stdout)["against"]
        assert (done.returncode, said["status"]) == (0, "consistent"), done.stderr + done.stdout
        indexes, rest = said["message"].removeprefix("entries ").split(" of ", 1)
        assert sorted(map(int, indexes.split(", "))) == [*range(9)]
        assert rest.startswith(f"{log.origin} are still there")
        log.rewrite(8)
        done = command.run((*words, site.at()), {"PATH": "/nothing"}, directory=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["against"]["alarm"]) == (1, "fork")
    check = ("log", "check-alarm", "fork.alarm.json", "--policy", "policy")
    assert command.run(check, {"PATH": "/nothing"}, directory=tmp_path).returncode == 0


class OfTheGuides(Vectors):
    """The log that the guides name."""

    origin = "evidence.example.com/v1/log/live/1"


def test_the_guides_show_the_real_output_of_the_command(tmp_path: Path) -> None:
    """Of the same dossier: verified, and looked up in the log of today."""
    log = OfTheGuides()
    log.grow(815)
    order = MAKER.live_order()
    held = [one for one in order if one.id.startswith(("rec_", "ack_"))]
    places = dict(zip((one.id for one in held), (3, 4, 5, 6, 7, 812), strict=True))
    for one in held:
        log.rewrite(places[one.id], log_entry(log.origin, sha256(one.body).digest()))
    plain = MAKER.dossier(*order, of=held, live=True)
    records = {
        id_: files._replace(proof=proof_of(log, files.record, places[id_]))
        for id_, files in plain.records.items()
    }
    policy = f"{log.policy}quorum none\n".encode()
    (tmp_path / "countersign.policy").write_bytes(policy)
    dossier = write_dossier(replace(plain, records=records, policy=policy))
    (tmp_path / f"{held[-1].id}-dossier.zip").write_bytes(dossier)
    log.grow(20_344 - 815, "later")
    with served(log) as site:
        texts = [block.text for block in read(ROOT / "docs" / "monitor.md").blocks]
        (shown,) = [text for text in texts if text.startswith("$ countersign verify ack_")]
        line, _, printed = shown.partition("\n…\n")
        words = line.replace(f"https://{log.origin}", site.at()).split()[2:]
        done = command.run(words, {"PATH": "/nothing"}, directory=tmp_path)
        assert done.returncode == 0
        summary, _, verdicts = done.stdout.partition("\n\n")
        assert (len(summary.splitlines()), verdicts) == (5, printed)


def test_a_killed_copy_continues(tmp_path: Path) -> None:
    """At any moment of a first run and of a later one; in the end it equals the log."""
    log = Log()
    (tmp_path / "policy").write_text(f"{log.policy}quorum none\n", encoding="utf-8")
    words = ["log", "mirror", "", "copy", "--policy", "policy"]
    with served(log) as site:
        words[2] = site.at()
        for more, asked in ((6_000, 20), (0, 25), (2_000, 10)):
            log.grow(more)
            before = len(log.asked)
            with (tmp_path / "out").open("wb") as sink:
                process = forked.start(
                    ["countersign", *words], {}, stdout=sink, stderr=sink, directory=tmp_path
                )
            while len(log.asked) < before + asked and process.poll() is None:
                pass
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        log.asked.clear()
        done = command.run(words, {"PATH": "/nothing"}, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    copied = {
        file.relative_to(tmp_path / "copy").as_posix(): file.read_bytes()
        for file in (tmp_path / "copy").rglob("*")
        if file.is_file() and file.name != ".lock"
    }
    assert copied["checkpoint"] == log.signed()
    assert {path for path in copied if path.startswith("tile/entries/") and ".p" not in path} == {
        f"tile/entries/{n:03}" for n in range(8_000 // 256)
    }
    assert [path for path, body in copied.items() if log.resource(path) != body] == []
    assert "tile/entries/000" not in log.asked, "what was copied before is not read again"
