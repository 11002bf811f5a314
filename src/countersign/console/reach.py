"""How far a caller's acts reach: one account in one mode, or the whole deployment."""

from __future__ import annotations

from functools import partial
from typing import Final

from countersign.access.key import Principal, Scope
from countersign.access.reach import AccountReach, DeploymentReach
from countersign.errors import Forbidden, InvalidRequest
from countersign.http.route import Route
from countersign.mode import Mode

staff_route: Final = partial(Route, console=True)
"""An operation of the console."""


def require_deployment(who: Principal, scope: Scope) -> None:
    """Refuse those who act for one account what is of all of them."""
    if who.account_id:
        raise Forbidden(
            "This is an act of the deployment's staff: it cannot be done for one account.",
            scope=scope,
        )


def require_account(who: Principal) -> AccountReach:
    """The account and the mode for which this is asked."""
    reach = who.reach
    if isinstance(reach, DeploymentReach):
        raise InvalidRequest("Name the account: this is done for one account and mode.")
    return reach


def within(who: Principal, account_id: str, mode: Mode | None = None) -> bool:
    """Whether what is of this account and mode (None: of both) is within reach."""
    return who.account_id in {"", account_id} and mode in {None, who.mode}


async def of_deployment(_room: object, _named: str) -> tuple[str, Mode]:
    """For whom a command acts that names no account and mode: the `owner` of its route."""
    return "", Mode.LIVE
