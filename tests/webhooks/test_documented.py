"""docs/webhooks.md: its examples match the sent messages, and its code verifies them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.base.values import Mode
from countersign.core.events.model import EventIds, EventType, RecordedEvent
from countersign.core.events.routes import event_view, message_of
from countersign.core.webhooks.model import (
    JITTER,
    SCHEDULE,
    DeliveryStatus,
    Outcome,
    PrivateKey,
    SharedSecret,
    sign,
)
from tests.docs.markdown import ROOT, Block, read
from tests.docs.shell import run_blocks
from tests.support import node
from tests.support.service import PREFIX, Deployment, running_server
from tests.webhooks.receiver import Receiver, running_receiver

PAGE = read(ROOT / "docs" / "webhooks.md")
(PYTHON,) = [block for block in PAGE.blocks if block.language == "python"]
(SCRIPT,) = [block for block in PAGE.blocks if block.language == "js"]
SECRET, OLD, PRIVATE = SharedSecret(b"s" * 32), SharedSecret(b"o" * 24), PrivateKey(b"k" * 32)
BODY = json.dumps({"type": "buyer.revoked", "data": {"cbid": "cbid_x"}, "odd": "é€"}).encode()

Case = tuple[str, dict[str, str], bytes]
Judge = Callable[[list[Case]], list[Any]]


def messages() -> tuple[list[Case], list[Case]]:
    """Valid and invalid messages."""
    now = int(time.time())
    headers = sign([SECRET, PRIVATE], "evt_1", now, BODY)
    rotating = sign([SharedSecret(b"n" * 32), PRIVATE, SECRET], "evt_1", now, BODY)
    good = [
        (SECRET.text, headers, BODY),
        (SECRET.text, rotating, BODY),
        (OLD.text, sign([OLD], "evt_2", now - 200, BODY), BODY),
        (SECRET.text, sign([SECRET], "evt_3", now, b"{}"), b"{}"),
    ]
    changed = [
        headers | {"webhook-id": "evt_2"},
        headers | {"webhook-timestamp": str(now - 1)},
        headers | {"webhook-timestamp": "yesterday"},
        headers | {"webhook-timestamp": ""},
        headers | {"webhook-signature": "v1,AAAA"},
        headers | {"webhook-signature": ""},
        headers | {"webhook-signature": headers["webhook-signature"].replace("v1,", "v2,")},
        sign([SECRET], "evt_1", now - 400, BODY),
        sign([SECRET], "evt_1", now + 400, BODY),
        sign([PRIVATE], "evt_1", now, BODY),
    ]
    changed += [{n: v for n, v in headers.items() if n != name} for name in headers]
    bad = [(SECRET.text, one, BODY) for one in changed]
    bad += [(OLD.text, headers, BODY), (SECRET.text, headers, BODY + b" ")]
    return good, bad


def python_judge(block: Block) -> Judge:
    """The result of the shown function."""
    shown: dict[str, Any] = {}
    exec(compile(block.text, str(block), "exec"), shown)  # noqa: S102 - our own page
    return lambda cases: [shown["receive"](*case) for case in cases]


def node_judge(block: Block, folder: Path) -> Judge:
    """The verdict of the shown module, in Node.js."""
    module = folder / "shown.mjs"
    module.write_text(block.text, encoding="utf-8")
    return program_judge("node", str(node.WEBHOOKS / "judge.mjs"), str(module), folder=folder)


def program_judge(*command: str, folder: Path) -> Judge:
    """The output of a program for these cases."""

    def judge(cases: list[Case]) -> list[Any]:
        asked = [(s, h, base64.b64encode(b).decode()) for s, h, b in cases]
        done = subprocess.run(
            command,
            cwd=folder,
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    return judge


def check(judge: Judge) -> None:
    """Every valid message is accepted with its content, all others refused without an exception."""
    good, bad = messages()
    assert judge(good) == [json.loads(body) for _, _, body in good]
    assert judge(bad) == [None] * len(bad)


def test_the_shown_python_accepts_sent_messages_and_nothing_else() -> None:
    """With the library."""
    check(python_judge(PYTHON))


@pytest.mark.npm
def test_the_reference_javascript_library_accepts_sent_messages_and_nothing_else(
    tmp_path: Path,
) -> None:
    """The package `standardwebhooks`, used as the page shows it."""
    (tmp_path / "node_modules").symlink_to(node.WEBHOOKS / "node_modules")
    check(node_judge(SCRIPT, tmp_path))


def test_the_table_lists_every_type_of_event_and_what_it_names() -> None:
    """None is missing, none is made up."""
    rows = {
        row[0].strip("`"): row[2].replace("`", "") for row in PAGE.rows("## Which events there are")
    }
    now = datetime(2026, 11, 20, tzinfo=UTC)
    assert rows == {
        type_.value: ", ".join(RecordedEvent.example("acct_1", Mode.LIVE, type_, now).data)
        for type_ in EventType
    }


def test_the_shown_message_matches_a_sent_one() -> None:
    """The same members in the same order, for the same event."""
    (block,) = [b for b in PAGE.blocks if b.section == "Which events there are"]
    shown = json.loads(block.text)
    now = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)
    event = RecordedEvent.example("acct_1", Mode.LIVE, EventType.BUYER_REVOKED, now)
    sent = message_of(event_view(EventIds(b"k"), event))
    assert list(shown) == list(sent)
    assert shown | {"id": "", "data": ""} == sent | {"id": "", "data": ""}
    assert list(shown["data"]) == ["cbid"]


def test_the_table_of_attempts_is_the_schedule() -> None:
    """Every wait, in words, and how much longer it may be."""
    rows = PAGE.rows("## When it fails")
    waits = [words(wait) for wait in SCHEDULE]
    assert rows == [[str(number), wait] for number, wait in enumerate(waits, 1)]
    assert "a fifth longer" in PAGE.prose
    assert JITTER == 0.2


def words(wait: timedelta) -> str:
    """How the page says it."""
    seconds = int(wait.total_seconds())
    for unit, length in (("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return "at once"


@pytest.mark.parametrize("word", [*Outcome, *DeliveryStatus])
def test_every_outcome_and_status_is_explained(word: str) -> None:
    """A developer who sees it in an answer finds it on the page."""
    assert f"`{word}`" in PAGE.prose


def test_the_shown_commands_work_one_after_the_other(tmp_path: Path) -> None:
    """From adding the endpoint to reading the events, against a server and a receiver."""
    made = Deployment(data_dir=tmp_path / "data", settings={"WEBHOOK_ALLOW_PRIVATE": "true"})
    made.run("init")
    key = made.key(made.account("shop"))

    async def scenario() -> Receiver:
        async with running_receiver() as receiver:
            with running_server(made) as server:
                inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
                printed = await asyncio.to_thread(
                    run_blocks,
                    [block for block in PAGE.blocks if block.language == "bash"],
                    directory=tmp_path,
                    environment=inherited | {"BASE": server.url, "KEY": key},
                    placeholders={"https://shop.example.com/countersign": receiver.url},
                )
            said = "".join(printed.values())
            assert '"error"' not in said
            assert said.count('"whsec_') == 2, "the secret, and the one that it was rotated to"
            assert '"outcome":"delivered"' in said
            return receiver

    receiver = asyncio.run(scenario())
    assert [received.message["data"] for received in receiver.received] == [
        {"cbid": "cbid_example"}
    ]
