"""The rows that an act may touch: the gate makes a reach of the caller, each query binds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from sqlalchemy import ColumnElement, FromClause, and_, true

from countersign.base.errors import ModeMismatch
from countersign.base.values import SANDBOX_BUYER, Mode


@dataclass(frozen=True, slots=True)
class AccountReach:
    """The rows of one account in one mode: for its keys, and for people who act for it.

    Data shared by both modes (people, brand, origins) is changed in live mode alone: see
    `LIVE_SCOPES`.
    """

    account_id: str
    mode: Mode

    def covers(self, account_id: str, mode: Mode) -> bool:
        """Whether a row of this account and mode is in reach."""
        return (account_id, mode) == (self.account_id, self.mode)

    def rows(self, table: FromClause) -> ColumnElement[bool]:
        """The condition that rows of a table with account and mode are in reach."""
        return and_(table.c.account_id == self.account_id, table.c.mode == self.mode)


@dataclass(frozen=True, slots=True)
class DeploymentReach:
    """The rows of every account in both modes: of staff, and of commands on the machine."""

    account_id: ClassVar[None] = None

    def covers(self, account_id: str, mode: Mode) -> bool:  # noqa: ARG002 - as of an account
        """Whether a row of this account and mode is in reach: it is."""
        return True

    def rows(self, table: FromClause) -> ColumnElement[bool]:  # noqa: ARG002 - as of an account
        """The condition that rows of a table are in reach: none."""
        return true()


Reach: TypeAlias = AccountReach | DeploymentReach
DEPLOYMENT: Final = DeploymentReach()


def mode_of_buyer(cbid: str) -> Mode:
    """The mode of a buyer, from its identifier: those of the sandbox are `cbid_test_…`."""
    return Mode.TEST if cbid.startswith(f"{SANDBOX_BUYER}_") else Mode.LIVE


def refuse_test_buyer(mode: Mode, cbid: str | None) -> None:
    """Refuse a live act that names a buyer of the sandbox (a `cbid_test_…`).

    Raises ModeMismatch.
    """
    if cbid is not None and mode is Mode.LIVE and mode_of_buyer(cbid) is Mode.TEST:
        raise ModeMismatch("A live key cannot name a buyer of the sandbox - at `$.cbid`.")


def reach_of(account_id: str, mode: Mode | None) -> Reach:
    """The reach of a stored owner; an empty account: the deployment."""
    return AccountReach(account_id, mode) if account_id and mode else DEPLOYMENT


def owner_of(reach: Reach) -> tuple[str, Mode | None]:
    """The owner that is stored for a reach."""
    return (reach.account_id, reach.mode) if isinstance(reach, AccountReach) else ("", None)
