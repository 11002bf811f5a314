"""A command is made from the route of its operation: from types, texts and a few declared words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import SimpleNamespace
from typing import Annotated, Any, Final

import click
import pytest
from click.testing import CliRunner, Result
from msgspec import Meta, Struct

from countersign.base.errors import NotFound
from countersign.base.http.body import parse_body
from countersign.base.http.schemas import LIMIT_DEFAULT, Limit, Page, Request, page_of
from countersign.base.values import Mode
from countersign.core.gate import commands
from countersign.core.gate.commands import command_among
from countersign.core.gate.route import Call, Command, Reply, Route, encode
from tools.commands import operations


class Tone(StrEnum):
    """A way to say it."""

    SOFT = "soft"
    SHARP = "sharp"


class Greeting(Request, frozen=True, kw_only=True):
    """What to say."""

    words_id: Annotated[str, Meta(description="Which words.", max_length=5)]
    tones: list[Tone] | None = None
    loud: Annotated[bool | None, Meta(description="Shout.")] = None
    wait_seconds: (
        Annotated[int, Meta(ge=0, le=60, description="First wait; `loud` cannot wait.")] | None
    ) = None


class GreetingsQuery(Request, frozen=True, kw_only=True):
    limit: Limit = LIMIT_DEFAULT
    after: str | None = None


class Said(Struct, frozen=True, kw_only=True):
    """What was said."""

    door: str
    body: Any
    mode: Mode


@dataclass
class Noted:
    """Whose audit an act notes itself in."""

    actor: str = "operator"
    reach: Any = None

    def of(self, actor: str, reach: Any) -> Noted:  # noqa: ANN401 - as `Audit.of`
        return Noted(actor, reach)


@dataclass
class Doors:
    """A room."""

    calls: list[Call] = field(default_factory=list)
    access: Any = field(default_factory=lambda: SimpleNamespace(audit=Noted()))


async def greet(room: Doors, call: Call) -> Reply:
    """Say something at a door."""
    parse_body(call.body, Greeting)
    room.calls.append(call)
    said = Said(door=call.parameter, body=json.loads(call.body), mode=call.principal.mode)
    return Reply(encode(said))


async def list_greetings(room: Doors, call: Call) -> Reply:
    """What was said."""
    rows = [{"name": f"{call.parameter}{n}", "tones": ["soft", "sharp"]} for n in range(3)]
    room.calls.append(call)
    return Reply(encode(page_of(rows, call.query.limit, lambda row: str(row["name"]))))


async def owner(_: Doors, door: str) -> tuple[str, Mode]:
    if door != "front":
        raise NotFound("There is no such door.")
    return "acct_1", Mode.LIVE


ROUTES: Final = (
    Route(
        address="POST /v1/doors/{door_id}/greetings",
        handler=greet,
        operation="greet",
        room=Doors,
        request=Greeting,
        response=Said,
        commands=(
            Command(name="doors greet", owner=owner, says="Said at {door}."),
            Command(
                name="doors shout",
                help="Shout at a door.",
                owner=owner,
                arguments=("words_id",),
                takes=(),
                sends={"loud": True},
                asks="Shout {words_id}?",
                shows=("door", "body.words_id"),
            ),
        ),
    ),
    Route(
        address="GET /v1/doors/{door_id}/greetings",
        handler=list_greetings,
        room=Doors,
        query=GreetingsQuery,
        response=Page[Said],
        commands=(Command(name="doors greetings", owner=owner, shows=("name", "tones")),),
    ),
)


def call(room: Doors, name: str, *words: str, typed: str = "") -> Result:
    """Run a command with this room."""

    @asynccontextmanager
    async def opened(kind: type) -> AsyncIterator[Doors]:
        assert kind is Doors
        yield room

    return CliRunner().invoke(command_among(ROUTES, name), words, obj=opened, input=typed)


def test_an_operation_that_declares_a_command_has_one() -> None:
    """It stands in the table with the help of its handler; nothing else has to name it."""
    rows = operations(ROUTES)
    place = f"{__name__}:ROUTES "
    assert rows["doors greet"] == {
        "help": "Say something at a door.",
        "place": place + "doors greet",
    }
    assert rows["doors shout"]["help"] == "Shout at a door."
    assert set(rows) == {"doors greet", "doors shout", "doors greetings"}


def test_the_options_of_a_command_are_the_members_of_the_request() -> None:
    """Names, help texts, values, durations, required and repeatable ones."""
    greeting = command_among(ROUTES, "doors greet")
    options = {p.opts[0]: p for p in greeting.params if isinstance(p, click.Option)}
    assert list(options) == ["--words", "--tone", "--loud", "--wait", "--json"]
    assert options["--words"].required
    assert options["--words"].help == "Which words."
    assert isinstance(options["--tone"].type, click.Choice)
    assert options["--tone"].multiple
    assert options["--loud"].is_flag
    assert options["--wait"].type.name == "duration"
    assert options["--wait"].help == "First wait; `--loud` cannot wait."


def test_an_option_needs_its_value_and_accepts_one_that_begins_with_a_dash() -> None:
    """Click makes a value optional if it is given a flag's value, even None."""
    room = Doors()
    done = call(room, "doors greet", "front", "--wait", "1m", "--words")
    assert (done.exit_code, room.calls) == (2, [])
    assert "'--words' requires an argument" in done.stderr
    done = call(room, "doors greet", "front", "--wait", "1m")
    assert (done.exit_code, room.calls) == (2, [])
    assert "Missing option '--words'" in done.stderr
    assert call(room, "doors greet", "front", "--words=--yes").exit_code == 0
    assert json.loads(room.calls[0].body) == {"words_id": "--yes"}


def test_a_length_of_time_can_be_zero() -> None:
    """As in the API: an overlap of `0s`, for example."""
    room = Doors()
    call(room, "doors greet", "front", "--words", "hello", "--wait", "0s")
    assert json.loads(room.calls[0].body)["wait_seconds"] == 0


def test_a_command_sends_only_the_given_values() -> None:
    """The handler reads a body as over HTTP, by an operator who may note it in the audit log."""
    room = Doors()
    done = call(room, "doors greet", "front", "--words", "hello", "--tone", "soft", "--wait", "1m")
    body = {"words_id": "hello", "tones": ["soft"], "wait_seconds": 60}
    assert json.loads(room.calls[0].body) == body
    noted: Any = room.calls[0].audit
    assert noted == Noted("operator", room.calls[0].principal.reach)
    assert room.calls[0].principal.key_id == "operator"
    assert done.stdout.splitlines()[0] == "door: front"
    assert done.stderr == "Said at front.\n"
    done = call(room, "doors greet", "front", "--words", "hello", "--json")
    assert json.loads(done.stdout) == {
        "door": "front",
        "body": {"words_id": "hello"},
        "mode": "live",
    }


def test_an_irreversible_command_asks_first() -> None:
    room = Doors()
    assert call(room, "doors shout", "front", "hello", typed="n\n").exit_code == 1
    assert room.calls == []
    done = call(room, "doors shout", "front", "hello", "--yes")
    assert json.loads(room.calls[0].body) == {"words_id": "hello", "loud": True}
    assert done.stdout == "front\nhello\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("front", "--words", "too long"), "(--words)"),
        (("front", "--words", "hello", "--wait", "2m"), "at most 60 seconds (--wait)"),
        (("back", "--words", "hello"), "There is no such door."),
    ],
)
def test_the_command_refuses_like_the_operation_and_names_its_option(
    words: tuple[str, ...], said: str
) -> None:
    room = Doors()
    done = call(room, "doors greet", *words, "--json")
    assert (done.exit_code, done.stdout, room.calls) == (1, "", [])
    assert said in json.loads(done.stderr)["error"]["message"]


def test_a_list_of_both_modes_says_how_to_continue_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Their cursors are not one another's."""
    pages = [
        {"data": [{"name": name, "livemode": live}], "next_cursor": cursor}
        for name, live, cursor in (("a", False, None), ("b", True, "b 1"))
    ]
    commands._show(Command(name="doors all", shows=("name",)), pages)
    out, err = capsys.readouterr()
    assert (out, err) == ("a\nb\n", "name\nThere are more: --mode live --after 'b 1'\n")


def test_a_list_is_printed_in_columns_and_says_how_to_continue() -> None:
    done = call(Doors(), "doors greetings", "front", "--limit", "2")
    assert done.stdout == "front0  soft, sharp\nfront1  soft, sharp\n"
    assert done.stderr == "name  tones\nThere are more: --after front1\n"
    done = call(Doors(), "doors greetings", "front", "--json")
    assert [row["name"] for row in json.loads(done.stdout)] == ["front0", "front1", "front2"]
