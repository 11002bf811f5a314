"""What the gates ask of a person beyond what they ask of a key, and what is noted of the call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from countersign.access.audit import AuditAction
from countersign.access.key import LIVE_SCOPES, Principal, Scope
from countersign.access.reach import AccountReach
from countersign.access.room import acting
from countersign.errors import Forbidden, InvalidRequest, ModeMismatch, PasskeyRequired
from countersign.http.headers import reason
from countersign.http.reply import Call, Reply
from countersign.http.route import Route
from countersign.ids import CHECKOUT_SESSION, is_id
from countersign.mode import Mode

_LOOKS: Final = frozenset({"GET", "HEAD"})
_NOTE_NOTHING: Final = frozenset({Scope.SANDBOX_MANAGE, Scope.CHECKOUT_SESSIONS_CREATE})
"""Scopes of acts that no operator does by a command of their own, and that note nothing."""
_DEPLOYMENT: Final = "deployment"
_SUBJECT_MAX: Final = 80
_ERRORS_FROM: Final = 300


def looks(route: Route[Any]) -> bool:
    """Whether the operation changes nothing."""
    return route.method in _LOOKS or str(route.scope).endswith(":read")


def lacks(who: Principal, scope: Scope) -> Forbidden:
    """The refusal of one who lacks the scope of an operation."""
    if who.person is None:
        return Forbidden(scope=scope)
    if not who.person.role:
        return Forbidden("You have no role there.", scope=scope)
    where = "" if who.account_id else " Name the account in Countersign-Account if it is about one."
    return Forbidden(f"The role {who.person.role} lacks the scope {scope}.{where}", scope=scope)


def judge(route: Route[Any], scope: Scope, call: Call) -> None:
    """Refuse who lacks the scope, or asks about an account what is of all, or the other way round.

    And a person who may only look, who must use the passkey first, or sees no such data.

    Raises:
        Forbidden: the key or the role does not allow it.
        PasskeyRequired: the operation destroys something.
        ModeMismatch: the operation changes what live mode has too, and test mode is asked for.
        InvalidRequest: personal data is asked for without a reason, or no account is named.
    """
    who, person = call.principal, call.principal.person
    if scope not in who.scopes:
        raise lacks(who, scope)
    if person is not None:
        if scope in person.looks and not looks(route):
            msg = f"With the scope {scope} the role {person.role} only looks."
            raise Forbidden(msg, scope=scope)
        if route.personal and not person.sees_personal_data:
            raise Forbidden(f"The role {person.role} does not see personal data.", scope=scope)
        if route.fresh and not person.is_fresh:
            raise PasskeyRequired
        if route.personal:
            reason(call)
    if scope in LIVE_SCOPES and who.account_id and who.mode is Mode.TEST and not looks(route):
        raise ModeMismatch("Both modes share this: change it with `Countersign-Mode: live`.")
    if route.reach is not None and not isinstance(who.reach, route.reach):
        if route.reach is AccountReach:
            raise InvalidRequest("Name the account: this is done for one account and mode.")
        msg = "This is an act of the deployment's staff: it cannot be done for one account."
        raise Forbidden(msg, scope=scope)


async def by_person(
    call: Call,
    route: Route[Any],
    carry_out: Callable[[Any], Awaitable[Reply]],
    room: Any,  # noqa: ANN401 - that of the route
) -> Reply:
    """Have what a person asks for done in the person's name.

    A look at personal data is noted before it is shown, with its reason. An act that notes nothing
    by itself is noted before it is done.
    """
    audit, who = call.audit, call.principal
    if audit is None:
        raise AssertionError("the call of a person has an audit")
    said = {"operation": route.operation}
    if who.account_id:
        said |= {"account_id": who.account_id, "mode": who.mode.value}
    place = who.account_id or _DEPLOYMENT
    if route.scope in _NOTE_NOTHING and not looks(route):
        # What a path names may not be there: it may be of another account, or no identifier.
        named = call.parameter
        about = {"checkout_session_id": named} if is_id(CHECKOUT_SESSION, named) else {}
        await audit.note(AuditAction.CALLED, place, **said, **about)
    reply = await carry_out(acting(room, audit))
    if route.personal and reply.status < _ERRORS_FROM:
        subject = call.parameter[:_SUBJECT_MAX] or place
        await audit.note(AuditAction.PERSONAL_DATA_SHOWN, subject, **said, reason=reason(call))
    return reply
