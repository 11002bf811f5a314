"""How a package installed next to the service takes part in its server processes.

It names a factory as the entry point `test-mode` of the group `countersign.server`:

    [project.entry-points."countersign.server"]
    test-mode = "package.module:factory"

Each server process calls the factory once, with its open deployment. Without such a package
nothing is called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from countersign.core.gate.route import Call, Reply, Route
from countersign.operate.bootstrap import Deployment

Admit: TypeAlias = Callable[[Route[Any]], Awaitable[Reply]]
"""Handles the request by a route: scope, limits, body, idempotency, then the route's handler."""
Around: TypeAlias = Callable[[Route[Any], Call, Admit], Awaitable[Reply]]
"""Gets an authenticated request, and its route; calls `Admit` with that route or a changed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A package's part in a server process."""

    name: str
    """Name of its background work in the log and the metrics."""
    around: Around
    """Wraps the authenticated requests of test mode. Requests of live mode never reach it."""
    run: Callable[[], Awaitable[object]]
    """Background work, until it is cancelled."""


def installed_extension(deployment: Deployment) -> Extension | None:
    """The extension of the installed package, if any."""
    for entry in entry_points(group="countersign.server", name="test-mode"):
        found: Extension = entry.load()(deployment)
        return found
    return None
