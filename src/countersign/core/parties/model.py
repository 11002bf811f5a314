"""The operator and the vendors, as described in records."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, NamedTuple

from countersign.base.errors import InvalidArgument
from countersign_evidence.canonical import Json
from countersign_evidence.record import PARTIES_VERSION

DEPLOYMENT: Final = "deployment"
"""The scope of the operator's records; that of the others is their account."""
TEXT_LENGTH_MAX: Final = 500
STATEMENT_LENGTH_MAX: Final = 20_000
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNPRINTABLE_IN_LINES: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class PartyType(StrEnum):
    """What a party's record describes; its values are those of `RecordType`."""

    OPERATOR = "operator"
    ACCOUNT = "account"
    CAPTURE_PROCESS = "capture_process"


class Bound(NamedTuple):
    """The SHA-256 in hex of the records in force when another one is written; None: none is."""

    operator: str | None = None
    account: str | None = None
    capture_process: str | None = None

    def members(self) -> dict[str, Json]:
        """The members that say so in a record of a fact."""
        return {
            "v": PARTIES_VERSION,
            "operator_record": self.operator,
            "account_record": self.account,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Particulars:
    """A party's own description; None: not stated."""

    legal_name: str | None = None
    address: str | None = None
    licence: str | None = None
    contact: str | None = None

    def over(self, earlier: Particulars) -> Particulars:
        """These, with the earlier ones where none is given; an empty text removes one.

        Raises InvalidArgument if one is too long, or not one line of printable text.
        """
        return Particulars(
            **{
                field.name: checked(field.name, given, getattr(earlier, field.name))
                for field in fields(self)
                for given in [getattr(self, field.name)]
            }
        )


def checked(name: str, given: str | None, earlier: str | None) -> str | None:
    """The new description."""
    if given is None:
        return earlier
    text = given.strip()
    if len(text) > TEXT_LENGTH_MAX or _UNPRINTABLE.search(text):
        raise InvalidArgument(
            f"{name.replace('_', ' ')}: at most {TEXT_LENGTH_MAX} characters on one line, "
            "without control characters."
        )
    return text or None


def checked_statement(text: str) -> str:
    """The statement of a capture process, without white space around it.

    Raises InvalidArgument if it is empty, too long, or has control characters.
    """
    statement = text.strip()
    if not 0 < len(statement) <= STATEMENT_LENGTH_MAX or _UNPRINTABLE_IN_LINES.search(statement):
        raise InvalidArgument(
            f"A statement has 1 to {STATEMENT_LENGTH_MAX:,} characters, without control "
            "characters other than tabs and line ends."
        )
    return statement
