"""Acts with a route, and acts that stay commands: two lists, with every command and no other."""

from __future__ import annotations

import json
import re

from countersign.server.routes import ROUTES
from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs" / "staff-api.md").read_text(encoding="utf-8")
NO_MACHINE = ("## What has a route", "## What stays a command")


def commands_in(part: str) -> list[str]:
    """The commands in the first column of a table."""
    rows = [row.split("|")[1] for row in part.splitlines() if row.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_every_command_has_a_route_or_stays_a_command() -> None:
    """And is in one of the two lists once."""
    table = json.loads((ROOT / "src" / "countersign" / "commands.json").read_bytes())
    groups = {path.rpartition(" ")[0] for path in table}
    commands = sorted(path for path in table if path not in groups)
    lists = PAGE.partition(NO_MACHINE[0])[2]
    with_route, alone = lists.partition(NO_MACHINE[1])[::2]
    assert sorted(commands_in(with_route) + commands_in(alone)) == commands


def test_every_operation_of_the_first_list_exists() -> None:
    """Each operation of the console is in it."""
    part = PAGE.partition(NO_MACHINE[0])[2].partition(NO_MACHINE[1])[0]
    named = set(re.findall(r"`((?:GET|POST|PATCH|DELETE) [^`]+)`", part))
    routes = {route.address: route for route in ROUTES if route.operation}
    assert named <= routes.keys()
    of_staff = {a for a, one in routes.items() if one.console}
    assert of_staff <= named
