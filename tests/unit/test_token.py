"""A PKCS#11 token that hangs: only sealing waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from countersign.base.errors import TokenUnavailable
from countersign.base.generics import T
from countersign.core.log.token import Token
from countersign_evidence.note import Signer

VERIFIER = Signer.from_seed("log.example.com/v1/log/live/1", bytes(32)).verifier
_SIGNATURE = bytes(64)


class Hanging(Token):
    """A token whose module returns only when the test lets it."""

    def __init__(self) -> None:
        super().__init__(Path("module.so"), "token", Path("pin"), seconds=0.01)
        self.free = Event()
        self.calls = 0

    def _with_session(self, act: Callable[[], T]) -> T:
        self.calls += 1
        self.free.wait()
        return act()

    def _sign(self, key_id: bytes, message: bytes) -> bytes:
        del key_id, message
        return _SIGNATURE


def test_a_hanging_token_is_given_up_and_used_again_when_it_responds() -> None:
    """While one call hangs, others fail at once and are not put to the token."""
    token = Hanging()
    signer = token.signer(VERIFIER, b"id")
    with pytest.raises(TokenUnavailable, match=r"did not respond within 0\.01 seconds"):
        signer.sign(b"a\n")
    for _ in range(3):
        with pytest.raises(TokenUnavailable, match="does not respond"):
            signer.sign(b"b\n")
    assert token.calls == 1
    token.free.set()
    while True:  # until the call that hung has ended
        try:
            line = signer.sign(b"c\n")
            break
        except TokenUnavailable:
            continue
    assert line.startswith("\u2014 log.example.com/v1/log/live/1 ".encode())


def test_errors_of_a_module_name_the_token() -> None:
    """Also where the module itself cannot be loaded."""
    token = Token(Path("/nowhere/module.so"), "token", Path("/nowhere/pin"))
    with pytest.raises(TokenUnavailable, match="The token token cannot be used: FileNotFoundError"):
        token.signer(VERIFIER, b"id").sign(b"a\n")
