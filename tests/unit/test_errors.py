"""Errors: one tree, a stable code and a status and a remedy for each."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import countersign
import countersign_evidence
from countersign.base import errors
from countersign.base.errors import (
    _REMEDIES,
    CountersignError,
    Forbidden,
    InternalError,
    InvalidApiKey,
    InvalidClientToken,
    OperatorError,
    Refusal,
    Retryable,
    Unauthorized,
)
from countersign.core.gate.route import error_reply
from countersign.server.routes import ROUTES
from countersign_evidence.errors import EvidenceError
from tests.support.every import every
from tools.openapi import refusals_of

E = TypeVar("E", bound=BaseException)
HELP = "https://c.example.com/docs/errors"


def below(root: type[E]) -> Iterator[type[E]]:
    """Every class under this one."""
    for child in root.__subclasses__():
        yield child
        yield from below(child)


def make(kind: type[Refusal]) -> Refusal:
    return Forbidden(scope="acks:read") if kind is Forbidden else kind()


# Migrations are run by their own tool, and `__main__` is the command itself.
NOT_IMPORTED = {"countersign.__main__", "countersign.base.db.migrations.env"}
OURS = ("countersign.", "countersign_evidence.")
_modules = [
    *pkgutil.walk_packages(countersign.__path__, "countersign."),
    *pkgutil.walk_packages(countersign_evidence.__path__, "countersign_evidence."),
]
for _module in _modules:
    if _module.name not in NOT_IMPORTED and ".versions." not in _module.name:
        importlib.import_module(_module.name)

REFUSALS = sorted(set(below(Refusal)) - {Retryable}, key=lambda kind: kind.__name__)
OPERATOR = sorted(below(OperatorError), key=lambda kind: kind.__name__)
refusals = every("kind", REFUSALS)


def test_all_errors_are_in_one_tree() -> None:
    """Whatever the service raises on purpose can be caught by its root.

    Exceptions: evidence, a library whose inputs are plain values; a label in a log, which is never
        caught; and signals that stay inside the room of an outside party, or the doctor's.
    """
    own = {kind for kind in below(Exception) if kind.__module__.startswith(OURS)}
    rooms = (
        "countersign_evidence.offline.",
        "countersign.operate.doctor.",
        "countersign.identity.",
        "countersign.staff.people.model",
        "countersign_evidence.monitor.",
        "countersign.core.webhooks.address_guard",
    )
    own = {kind for kind in own if not kind.__module__.startswith(rooms)}
    outside = {kind for kind in own if not issubclass(kind, CountersignError | EvidenceError)}
    assert {kind.__name__ for kind in outside} == {"_Unexpected"}


@refusals
def test_every_refusal_has_a_code_a_message_and_a_remedy(kind: type[Refusal]) -> None:
    """Programs read the code, people the message, and the error page shows the remedy."""
    refusal = make(kind)
    assert refusal.code.replace("_", "").isalpha()
    assert refusal.code.islower()
    assert refusal.message.endswith(".")
    assert kind.remedy.endswith(".")


def test_every_remedy_is_of_a_refusal() -> None:
    """A deleted refusal leaves none behind."""
    assert set(_REMEDIES) == {kind.code for kind in REFUSALS}


@refusals
def test_every_refusal_has_a_status(kind: type[Refusal]) -> None:
    """Only an internal error is our own fault."""
    assert 400 <= kind.status <= 599
    assert (kind.status == 500) == (kind is InternalError)


def test_the_catalogue_has_every_refusal() -> None:
    """A missing one would be missing on the page of errors."""
    assert set(errors.REFUSALS) == set(REFUSALS)


def test_codes_are_unique() -> None:
    """A code means one thing, to callers and to operators."""
    for kinds in (REFUSALS, OPERATOR):
        assert [c for c, n in Counter(kind.code for kind in kinds).items() if n > 1] == []
    shared = {kind.code for kind in REFUSALS} & {kind.code for kind in OPERATOR}
    assert shared == set()


@every("kind", OPERATOR)
def test_every_operator_error_has_a_code_of_its_own_and_a_message(
    kind: type[OperatorError],
) -> None:
    """Scripts read the code with --json."""
    assert "code" in vars(kind)
    assert kind().message


@refusals
def test_every_failure_has_the_same_form_of_body(kind: type[Refusal]) -> None:
    """Exactly an error with code and message, never to be stored by a cache."""
    refusal = make(kind)
    reply = error_reply(refusal, HELP)
    assert json.loads(reply.body) == {"error": {"code": refusal.code, "message": refusal.message}}
    headers = dict(reply.headers)
    assert headers[b"content-type"].startswith(b"application/json")
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"link"] == f'<{HELP}#{refusal.code}>; rel="help"'.encode()


@refusals
def test_a_temporary_refusal_says_when_to_try_again(kind: type[Refusal]) -> None:
    """Retry-After exactly where the same request may succeed later."""
    reply = error_reply(kind(retry_after=7) if issubclass(kind, Retryable) else make(kind), HELP)
    assert dict(reply.headers).get(b"retry-after") == (
        b"7" if issubclass(kind, Retryable) else None
    )


def test_statuses_that_ask_for_a_later_retry_are_retryable() -> None:
    """429 and 503 without Retry-After leave a client guessing."""
    for kind in REFUSALS:
        assert kind.status not in {429, 503} or issubclass(kind, Retryable)


@refusals
def test_only_a_missing_or_weak_key_is_challenged(kind: type[Refusal]) -> None:
    """WWW-Authenticate by RFC 6750: bare, invalid_token, insufficient_scope with the scope."""
    challenge = dict(error_reply(make(kind), HELP).headers).get(b"www-authenticate")
    realm = b'Bearer realm="countersign"'
    assert challenge == {
        Unauthorized: realm,
        InvalidApiKey: realm + b', error="invalid_token"',
        InvalidClientToken: realm + b', error="invalid_token"',
        Forbidden: realm + b', error="insufficient_scope", scope="acks:read"',
    }.get(kind)


def test_a_refusal_without_a_status_is_our_own_fault() -> None:
    """The response is an internal error, without details."""

    class Forgotten(Refusal):
        """A secret reason."""

        code = "forgotten"

    reply = error_reply(Forgotten(), HELP)
    assert reply.status == 500
    assert json.loads(reply.body)["error"]["code"] == InternalError.code
    assert b"secret" not in reply.body


def test_the_codes_of_the_specification_are_there() -> None:
    """The codes promised to clients."""
    codes = {kind.code for kind in REFUSALS}
    assert codes >= {
        "initials_count_mismatch",
        "empty_initials",
        "notice_not_found",
        "not_found",
    }


def test_every_refusal_can_be_met_on_some_route() -> None:
    """A code that no operation documents would be dead, or a surprise.

    The address for identity providers' messages is theirs, and no operation of the interface.
    """
    documented = {kind for route in ROUTES for kind in refusals_of(route)}
    assert {kind for kind in REFUSALS if kind not in documented} == {errors.WebhookRefused}


def test_the_default_message_is_the_first_line_of_the_docstring() -> None:
    """And a given message replaces it."""
    assert errors.RateLimited().message == "Too many requests."
    assert errors.RateLimited("At most 5.").message == "At most 5."
    assert errors.RateLimited().retry_after == 1


def test_no_text_names_a_constant_that_it_does_not_insert() -> None:
    """A line that lost its `f` would show `{_NAME}` to people."""
    found = [
        (path.name, node.lineno)
        for root in ("src", "packages")
        for path in (Path(__file__).parents[2] / root).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"\{_[A-Z]\w*\}", node.value)
    ]
    assert found == []
