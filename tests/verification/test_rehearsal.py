"""The rehearsal that the page describes works as it is written, and with every provider."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from countersign_simulators.registry import SIMULATORS
from tests.cli.conftest import Bench
from tests.docs.markdown import ROOT, Block, read
from tests.docs.shell import check_answers, run_blocks
from tests.http.backstage import another_deployment, make_client
from tests.support import forked
from tests.support.service import PREFIX, Server, free_port, running_server

pytestmark = pytest.mark.long

PAGE: Final = read(ROOT / "docs" / "rehearsal.md")
SECTION: Final = "Rehearse live verification"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Give a deployment; each test makes accounts of its own."""
    made = another_deployment(tmp_path_factory.mktemp("rehearsal") / "data")
    return Bench(data_dir=made.data_dir, settings=dict(made.settings))


@pytest.fixture(scope="module")
def served(bench: Bench) -> Iterator[Server]:
    """Run its server."""
    with running_server(bench) as server:
        yield server


def output(bench: Bench, *arguments: str) -> str:
    """The output of the simulator's command."""
    return bench.run("simulate-provider", *arguments).stdout


def sessions(bench: Bench, provider: str) -> list[dict[str, Any]]:
    """The output of `--list`: one JSON object a line."""
    return [json.loads(line) for line in output(bench, provider, "--list").splitlines()]


@contextmanager
def simulated(provider: str, folder: Path) -> Iterator[str]:
    """Run `simulate-provider` until the block ends; gives the address that it prints."""
    words = ["countersign", "simulate-provider", provider, "--port", "0"]
    read, write = os.pipe()
    with os.fdopen(read) as printed, (folder / "provider.log").open("wb") as log:
        with os.fdopen(write, "w") as output:
            process = forked.start(words, os.environ, stdout=output, stderr=log)
        try:
            yield printed.readline().strip()
        finally:
            process.terminate()
            process.wait(10)


# --- the page ----------------------------------------------------------------------------------


@pytest.mark.later  # it runs a page, whose commands have tests of their own
def test_the_rehearsal_works_as_the_page_writes_it(tmp_path: Path) -> None:
    """Every block, in one shell; each response is the one shown below it."""
    blocks = [block for block in PAGE.blocks if block.section == SECTION]
    inherited = {n: value for n, value in os.environ.items() if not n.startswith(PREFIX)}
    ports = {shown: str(free_port()) for shown in ("9100", "8080")}
    # Nothing stays behind, whichever line fails.
    trap = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"
    first = Block(page=PAGE.path, line=0, language="bash", text=trap, section=SECTION)
    printed = run_blocks(
        [first, *(block for block in blocks if block.language == "bash")],
        directory=tmp_path,
        environment=inherited | {f"{PREFIX}PORT": ports["8080"]},
        placeholders=ports,
        seconds=120,
    )
    assert check_answers(blocks, printed) == 4
    *_, webhook, last = printed.values()
    assert webhook.endswith("The receiver returned 200.\n200\n")
    assert '"plays"' not in last
    assert "Quillfeather" not in last
    assert '"date_of_birth": ' in last
    assert "evidence_shown" in last
    assert (tmp_path / "stripe.json").stat().st_mode & 0o777 == 0o600
    said = (tmp_path / "server.log").read_text() + (tmp_path / "provider.log").read_text()
    assert "Quillfeather" not in said


def test_the_page_names_the_members_of_a_listed_session(bench: Bench) -> None:
    """All of them, `subject_reference` too."""
    text = PAGE.path.read_text(encoding="utf-8").partition(f"# {SECTION}")[2]
    for session in sessions(bench, "stripe"):
        for member in session:
            assert f'"{member}"' in text
    for part in ("underage", "redacted", "rate_limited"):
        assert f"`{part}`" in text


# --- the command -------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", SIMULATORS)
def test_what_is_listed_has_what_a_caller_needs(bench: Bench, provider: str) -> None:
    """At least twelve sessions, all different except verified ones; the same at every start."""
    listed = sessions(bench, provider)
    parts = {session["plays"] for session in listed}
    assert len(parts) >= 12
    assert {"verified", "pending", "underage"} <= parts
    assert len({session["session_id"] for session in listed}) == len(listed)
    for session in listed:
        assert list(session) == [
            "session_id", "plays", "shipping_zip", "subject_reference", "personal",
        ]  # fmt: skip
        assert all(isinstance(word, str) for word in session["personal"])
    ids = [(s["session_id"], s["plays"], s["shipping_zip"]) for s in listed]
    assert ids == [
        (s["session_id"], s["plays"], s["shipping_zip"]) for s in sessions(bench, provider)
    ]


@pytest.mark.later
@pytest.mark.parametrize("provider", SIMULATORS)
def test_a_newcomer_rehearses_with_each_provider(
    bench: Bench, served: Server, tmp_path: Path, provider: str
) -> None:
    """With only the command's output: credentials, sessions, and an accepted webhook."""
    account = bench.account(f"rehearsal {provider}")
    credentials = tmp_path / "credentials.json"
    credentials.write_text(output(bench, provider, "--credentials"))
    listed = sessions(bench, provider)
    some = {session["plays"]: session for session in reversed(listed)}
    with (
        simulated(provider, tmp_path) as url,
        make_client(served, bench.key(account, "live")) as client,
    ):
        made = bench.read(
            *("accounts", "verification", "set", account, "--provider", provider, "--check"),
            *("--credentials-file", str(credentials), "--dangerous-base-url", url),
        )

        def verify(session: dict[str, Any]) -> httpx2.Response:
            body = {
                "provider_identity_session_id": session["session_id"],
                "shipping_zip": session["shipping_zip"],
                "subject_reference": session["subject_reference"],
            }
            return client.post("/v1/buyers/verify", json=body)

        for plays in ("verified", "pending", "underage"):
            answer = verify(some[plays])
            assert answer.status_code == 200, answer.text
            status_said = {"underage": "failed"}.get(plays, plays)
            assert answer.json()["status"] == status_said, (plays, answer.text)
        address = made["webhook_url"].replace(made["webhook_url"].partition("/v1/")[0], served.url)
        send = ("simulate-provider", provider, "--send-webhook", some["pending"]["session_id"])
        sent = bench.run(*send, address)
        assert (sent.stdout, sent.stderr) == ("200\n", "The receiver returned 200.\n")
        assert bench.read(*send, address) == {"status": 200}


def test_mistakes_are_reported_plainly(bench: Bench) -> None:
    """An unknown provider, session or receiver; a port that is no port, or taken."""
    send = ("simulate-provider", "stripe", "--send-webhook")
    known = sessions(bench, "stripe")[0]["session_id"]
    assert "--list" in bench.refused(*send, "vs_unknown", "http://127.0.0.1:1/")
    for nowhere in (
        f"http://127.0.0.1:{free_port()}/",
        "127.0.0.1",
        "ftp://127.0.0.1/",
        "http://[",
    ):
        assert "cannot be reached" in bench.refused(*send, known, nowhere)
    for words in (("nobody",), ("stripe", "--port", "65536"), ("stripe", "--port", "-1")):
        done = bench.run("simulate-provider", *words, check=False)
        assert (done.returncode, done.stdout) == (2, "")


def test_a_taken_port_is_reported_plainly(bench: Bench, tmp_path: Path) -> None:
    """With the way out."""
    with simulated("stripe", tmp_path) as url:
        said = bench.refused("simulate-provider", "stripe", "--port", url.rpartition(":")[2])
    assert "--port N" in said


def test_printed_credentials_are_json_on_one_line_or_readable(bench: Bench) -> None:
    """The same either way."""
    plain = output(bench, "onfido", "--credentials")
    line = output(bench, "onfido", "--credentials", "--json")
    assert json.loads(plain) == json.loads(line)
    assert len(plain.splitlines()) > len(line.splitlines()) == 1
