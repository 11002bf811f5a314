"""Tools of several unit tests: a fixed clock, repeating entropy, plain JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

T = TypeVar("T")

# 2026-11-20T21:31:00.123Z
NOW_NS = 1_795_210_260_123_000_000
NS = 1_000_000_000


@dataclass
class HandClock:
    """A clock that moves only when a test moves it. See `ports.Clock`."""

    ns: int = NOW_NS
    seconds: float = 1000.0

    def time_ns(self) -> int:
        return self.ns

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Let this much time pass."""
        self.seconds += seconds
        self.ns += round(seconds * NS)


@dataclass
class CountedEntropy:
    """Bytes that repeat from run to run but never within one, in place of `os.urandom`."""

    drawn: list[int] = field(default_factory=list)

    def __call__(self, size: int) -> bytes:
        self.drawn.append(size)
        seed = f"draw {len(self.drawn)}".encode()
        blocks = -(-size // 32)
        return b"".join(sha256(seed + bytes([block])).digest() for block in range(blocks))[:size]


def run(act: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine to its end, in an event loop of its own."""
    return asyncio.run(act)


def jcs(value: object) -> bytes:
    """RFC 8785 for values without floats, written from the RFC and sharing nothing with the code.

    §3.2.2.2: only characters that JSON requires to be escaped are, in the short form if there is
    one. §3.2.3: members are sorted by the UTF-16 code units of their names.
    """
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    if isinstance(value, str):
        return _jcs_string(value)
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, list | tuple):
        return b"[" + b",".join(jcs(item) for item in value) + b"]"
    assert isinstance(value, dict), type(value)
    members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
    return b"{" + b",".join(_jcs_string(k) + b":" + jcs(v) for k, v in members) + b"}"


_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def _jcs_string(text: str) -> bytes:
    escaped = "".join(_SHORT.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 else c) for c in text)
    return f'"{escaped}"'.encode()
