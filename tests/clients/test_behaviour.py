"""Both clients do what clients/behaviour.json says, against a real server behind a bad network."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from countersign_client import AsyncCountersign, Countersign
from tests.clients.conftest import Place
from tests.clients.messages import messages
from tests.clients.proxy import CASES, TABLE
from tests.clients.runner import Run
from tests.clients.tokens import ORDER, tokens
from tests.support import node
from tests.support.document import Document, committed_document
from tools.clients import call_of

pytestmark = pytest.mark.long

KINDS = [Countersign, AsyncCountersign]
BESIDES = {"clearance_tokens.keys", "clearance_tokens.verify"}
"""Methods that the clients add to the operations."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in CASES if name != "walk"])
def test_the_python_client_behaves(
    name: str, kind: type[Countersign | AsyncCountersign], place: Place
) -> None:
    """A case of the table, which states the promise."""
    behave(name, kind, place)


@pytest.mark.both_engines
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_of_the_python_client_works(
    kind: type[Countersign | AsyncCountersign], every_place: Place
) -> None:
    """The walk through all operations, on both engines."""
    behave("walk", kind, every_place)


def behave(name: str, kind: type[Countersign | AsyncCountersign], place: Place) -> None:
    key, values = place.vendor()
    asyncio.run(Run(kind=kind, name=name, proxy=place.proxy, key=key, values=values).run())


@pytest.mark.npm
def test_the_typescript_client_behaves(place: Place, built: Path) -> None:
    """Every case of the table, and its own ones, by the test runner of Node.js."""
    others = [name for name in CASES if name != "walk"]
    assert passed_in_node(place, built, others, "") > len(others)


@pytest.mark.npm
@pytest.mark.both_engines
def test_every_method_of_the_typescript_client_works(every_place: Place, built: Path) -> None:
    """The walk through all operations, on both engines."""
    assert passed_in_node(every_place, built, ["walk"], "behaviour.test.mjs") == 1


def passed_in_node(place: Place, built: Path, cases: list[str], file: str) -> int:
    """Run these cases, and what else is in the file or in all, in Node.js; returns how many."""
    key, values = place.vendor()
    given = {
        "table": str(TABLE),
        "cases": cases,
        "built": str(built),
        "proxy": place.proxy.url,
        "key": key,
        "values": values,
        "messages": [message.as_json() for message in messages()],
        "tokens": [token._asdict() for token in tokens()],
        "order": ORDER,
    }
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", str(node.CLIENT / "test" / file)],
        env={**os.environ, "BEHAVIOUR": json.dumps(given)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed
    return int(passed[1])


def test_the_walk_uses_every_method() -> None:
    """A new operation must be in the walk, too; staff's are in tests/staff."""
    walked = {step["call"] for step in CASES["walk"]["steps"] if "call" in step}
    operations = Document(committed_document()).of_vendors()
    assert walked == {*BESIDES} | {call_of(one.id, one.path) for one in operations}
