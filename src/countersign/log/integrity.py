"""Rows as they stand in the database, for comparing them with what they say of each other."""

from datetime import datetime
from typing import NamedTuple


class RecordRow(NamedTuple):
    """A record and what belongs to it. `account_id` is None for one of the deployment itself.

    `body` is None if it is not stored as bytes. `disclosed` is the account and mode of its
    disclosures, if they are there; `erasure_id` names the erasure, if it was erased.
    """

    id: str
    account_id: str | None
    mode: str
    type: str
    notice_id: str | None
    at: datetime
    digest: bytes | None
    body: bytes | None
    sealed: bool
    pending: bool
    disclosed: tuple[str, str] | None
    erasure_id: str | None


class NoticeRow(NamedTuple):
    """A published version of a notice. `body` is None if it is not stored as bytes."""

    notice_id: str
    version: str
    digest: str
    body: bytes | None
