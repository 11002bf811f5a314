"""The measured operations: requests and receivers."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

NOTICE_ID: Final = "ab1263"
BUYERS: Final = 1000
UNIQUE: Final = "~" * 22
"""A placeholder in the body: each request has its own value there, of the same length. The
`Idempotency-Key` of every POST is one too."""
USER_AGENT: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Safari/537.36"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A running server as its callers see it."""

    port: int
    key: str
    cbids: tuple[str, ...]
    lines: int


@dataclass(frozen=True, slots=True)
class Call:
    """One request: a path and, for a POST, its body."""

    path: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that callers do."""

    name: str
    method: str
    calls: Callable[[Endpoint], list[Call]]


def _notice(_endpoint: Endpoint) -> list[Call]:
    return [Call(f"/v1/notices/{NOTICE_ID}")]


def _status(endpoint: Endpoint) -> list[Call]:
    return [Call(f"/v1/buyers/{cbid}/status") for cbid in endpoint.cbids]


def _acknowledge(endpoint: Endpoint) -> list[Call]:
    body = {
        "initials_per_line": ["JD"] * endpoint.lines,
        "session_id": f"checkout_{UNIQUE}",
        "cbid": f"cbid_test_{UNIQUE}0000",
        "ip": "203.0.113.7",
        "user_agent": USER_AGENT,
    }
    path = f"/v1/notices/{NOTICE_ID}/acknowledge"
    return [Call(path, json.dumps(body, separators=(",", ":")))]


OPERATIONS: Final = MappingProxyType(
    {
        operation.name: operation
        for operation in (
            Operation("notice", "GET", _notice),
            Operation("status", "GET", _status),
            Operation("acknowledge", "POST", _acknowledge),
        )
    }
)
