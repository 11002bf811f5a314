"""Gates for people, in addition to those for keys, and the audit of their calls."""

from __future__ import annotations

from typing import Any, Final

from countersign.base.errors import Forbidden, InvalidRequest, ModeMismatch, PasskeyRequired
from countersign.base.values import CHECKOUT_SESSION, Mode, is_id
from countersign.core.access.audit import AuditAction
from countersign.core.access.key import LIVE_SCOPES, Principal, Scope
from countersign.core.access.reach import AccountReach
from countersign.core.access.room import acting
from countersign.core.gate.route import Call, Handler, Reply, Route, reason

_NOTE_NOTHING: Final = frozenset({Scope.SANDBOX_MANAGE, Scope.CHECKOUT_SESSIONS_CREATE})
"""Scopes of acts that have no command of their own and write no audit entry."""


def looks(route: Route[Any]) -> bool:
    """Whether the operation changes nothing."""
    return route.method in {"GET", "HEAD"} or str(route.scope).endswith(":read")


def lacks(who: Principal, scope: Scope) -> Forbidden:
    """The refusal of a caller without the operation's scope."""
    if who.person is None:
        return Forbidden(scope=scope)
    if not who.person.role:
        return Forbidden("You have no role there.", scope=scope)
    where = "" if who.account_id else " Name the account in Countersign-Account if it is about one."
    return Forbidden(f"The role {who.person.role} lacks the scope {scope}.{where}", scope=scope)


def judge(route: Route[Any], scope: Scope, call: Call) -> None:
    """Refuse a caller without the scope, or with an account where none belongs, or vice versa.

    Also a person who may only read, must use the passkey first, or may not see such data.

    Raises:
        Forbidden: the key or the role does not allow it.
        PasskeyRequired: the operation destroys something.
        ModeMismatch: the operation changes data that both modes share, in test mode.
        InvalidRequest: personal data without a reason, or no account named.
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
    act: Handler[Any],
    room: Any,  # noqa: ANN401 - that of the route
) -> Reply:
    """Run a person's call in the person's name.

    Reading personal data is audited, with its reason, before the data is shown. An act without an
    audit entry of its own is recorded before it runs.
    """
    audit, who = call.audit, call.principal
    if audit is None:
        raise AssertionError("the call of a person has an audit")
    said = {"operation": route.operation}
    if who.account_id:
        said |= {"account_id": who.account_id, "mode": who.mode.value}
    place = who.account_id or "deployment"
    if route.scope in _NOTE_NOTHING and not looks(route):
        # The path's object may not exist, belong to another account, or not be an identifier.
        named = call.parameter
        about = {"checkout_session_id": named} if is_id(CHECKOUT_SESSION, named) else {}
        await audit.note(AuditAction.CALLED, place, **said, **about)
    reply = await act(acting(room, audit), call)
    if route.personal and reply.status < 300:
        subject = call.parameter[:80] or place
        await audit.note(AuditAction.PERSONAL_DATA_SHOWN, subject, **said, reason=reason(call))
    return reply
