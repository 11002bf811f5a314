"""The tables, the same on SQLite and PostgreSQL. `migrations/` creates them; a test compares.

Times are Unix milliseconds. Each table declares who owns its rows (`RowOwner`). PROTECTED tables
accept INSERT and SELECT only, enforced by triggers; erasable data is in separate tables.
"""

import os
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

from countersign.base.values import from_ms, to_ms

PROTECTED: Final = (
    *("records", "notice_versions", "notice_events", "deployment_records", "logs", "log_entries"),
    *("log_tiles", "checkpoints", "anchors", "log_rosters", "log_proposals", "log_approvals"),
    *("erasures", "audit_log", "parties", "ended_records", "audit_chain", "audit_owners"),
)

NUMBERS: Final = 64
"""How many events a row can hold: on PostgreSQL the sequence of `events.seq` counts by it."""

EVENT_OF_BUYER: Final = "substr(type, 1, 6) = 'buyer.'"
"""SQL condition for events about a buyer; the partial index matches only this text."""

EVENT_OF_DAY: Final = "substr(type, 1, 6) IN ('buyer.', 'checko')"
"""SQL condition for events that the console counts; the partial index matches only this text."""

ABOUT_OTHERS: Final = "substr(about, 1, 4) <> 'ack_'"
"""SQL condition for kept responses about other than acknowledgments; likewise."""

ONLY_ON: Final = "only_on"
"""In the `info` of an index: the engine that has it."""

WHERE: Final = "where"
"""In the `info` of an index: the rows that it has, in SQL. SQLAlchemy's own options for that load
the dialects of all engines wherever the tables are known."""

metadata: Final = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class Instant(TypeDecorator[datetime]):
    """A time: an aware datetime in Python, Unix milliseconds in the database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - SQLAlchemy's signature
        """To Unix milliseconds; a datetime without a zone raises TypeError."""
        return None if value is None else to_ms(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ANN401, ARG002 - SQLAlchemy's signature
        """From Unix milliseconds."""
        return None if value is None else from_ms(value)


def _mode() -> Column[str]:
    return Column(
        "mode", String(4), CheckConstraint("mode IN ('test', 'live')", name="mode"), nullable=False
    )


def _account() -> Column[str]:
    return Column("account_id", ForeignKey("accounts.id"), nullable=False)


def _account_and_mode(*, refers: bool = True) -> tuple[Column[str], Column[str]]:
    """Whose the rows are; with `refers`, the database looks the account up at each write."""
    copied = Column("account_id", String(40), nullable=False)
    return _account() if refers else copied, _mode()


def _required(kind: TypeEngine[Any] | type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    """Columns of one type that are never NULL."""
    return [Column(name, kind, nullable=False) for name in names]


def _indexes(*columns: str) -> list[Index]:
    """One for each of these columns."""
    return [Index(None, column) for column in columns]


class RowOwner(NamedTuple):
    """Whose the rows of a table are, in its `info[OWNER]`: by these columns of theirs."""

    account: str = ""
    """The column with the account's id."""
    mode: str = ""
    part_of: tuple[str, ...] = ()
    """The tables that `key` refers to: a row has the owner of the row that it refers to."""
    key: str = ""
    theirs: str = ""
    """The column that `key` refers to; "": the primary key."""
    is_shared: bool = False
    """Whether accounts of one mode share the rows: an account reaches a row through its own
    data."""


OWNER: Final = "owner"

_OfBuyers: TypeAlias = Literal[
    "cbid", "buyer", "strange_buyer", "remembered_buyer", "left", "user_handle"
]
_OfOrders: TypeAlias = Literal["session_id", "checkout_session.session_id", "order"]
_OfPlaces: TypeAlias = Literal["zip", "proved_zip", "review", "order_reference", "copy_address"]
_OfSessions: TypeAlias = Literal["provider_session", "provider_session_and_reference"]
_OfProviders: TypeAlias = Literal["subject_reference", "provider_message", "document", "subject"]
# The last group is used by the conformance kit, in its own database.
_Other: TypeAlias = Literal["passkey", "cookie", "conformance"]
Field: TypeAlias = Literal[_OfBuyers, _OfOrders, _OfPlaces, _OfSessions, _OfProviders, _Other]
"""The field name of a keyed hash: see `DeploymentSecret.blind_index`."""
_Kept: TypeAlias = Literal["content", "evidence", "tombstone"]
GoesWith: TypeAlias = Literal[_Kept, "buyer", "check", "session", "order", "person"]
"""The event that erases the content of a column. `tombstone`: with a buyer who was not revoked;
`content`: with the erasure of a record; `evidence`: with the end of evidence; `person`: of people
of the console."""


class Personal(NamedTuple):
    """That a column is personal, in its `info[PERSONAL_INFO]`."""

    subject: GoesWith
    fields: tuple[Field, ...] = ()
    """For a keyed hash: its field names."""


PERSONAL_INFO: Final = "personal"


def _personal(subject: GoesWith, *fields: Field) -> dict[str, Personal]:
    return {PERSONAL_INFO: Personal(subject, fields)}


def _cbid(subject: GoesWith, **options: Any) -> Column[str]:  # noqa: ANN401 - of a column
    return Column("cbid", String(40), info=_personal(subject), **options)


_OF_SESSION: Final = "provider_session", "provider_session_and_reference"
_OF_DAY: Final = "account_id", "mode", "type", "at", "triggered"
_REFERENCED: Final = {WHERE: "reference_index IS NOT NULL"}
_OF_TRIES: Final = "buyer", "strange_buyer", "remembered_buyer", "provider_session"


@cache
def personal_columns(*subjects: GoesWith, name: str = "") -> tuple[Column[Any], ...]:
    """The columns erased with these, named `name` if given; referenced tables come last.

    Raises LookupError if a table names orders or buyers and does not declare when they are erased.
    """
    columns = [column for table in reversed(metadata.sorted_tables) for column in table.c]
    for column in columns:
        is_hash = column.name.endswith("_index") and isinstance(column.type, LargeBinary)
        if PERSONAL_INFO not in column.info and (is_hash or column.name == "cbid"):
            raise LookupError(f"nothing erases {column}, which names orders or buyers")
    declared = [column for column in columns if PERSONAL_INFO in column.info]
    own = [column for column in declared if column.info[PERSONAL_INFO].subject in subjects]
    return tuple(column for column in own if name in {"", column.name})


def blanks(table: Table, subject: GoesWith) -> dict[str, object]:
    """The values that overwrite personal columns in rows that stay: NULL, or random bytes."""
    # As long as a keyed hash.
    empty = {Text: "[]", LargeBinary: os.urandom(16)}
    own = [column for column in personal_columns(subject) if column.table is table]
    return {column.name: None if column.nullable else empty[type(column.type)] for column in own}


def _hidden(name: str, subject: GoesWith, *fields: Field, **options: Any) -> Column[bytes]:  # noqa: ANN401 - of a column
    """Sealed, or a keyed hash."""
    return Column(name, LargeBinary, info=_personal(subject, *fields), **options)


def _table(
    owner: RowOwner,
    name: str,
    *items: SchemaItem,
    **options: Any,  # noqa: ANN401 - of a dialect
) -> Table:
    return Table(name, metadata, *items, info={OWNER: owner}, **options)


# These functions make each table and declare the owner of its rows.
_of_deployment: Final = partial(_table, RowOwner())
_of_account: Final = partial(_table, RowOwner(account="account_id"))
_in_mode: Final = partial(_table, RowOwner(account="account_id", mode="mode"))
_shared: Final = partial(_table, RowOwner(is_shared=True))


def _part_of(tables: str, key: str, theirs: str = "") -> Callable[..., Table]:
    return partial(_table, RowOwner(part_of=(*tables.split(),), key=key, theirs=theirs))


deployment: Final = _of_deployment(
    "deployment",
    Column("name", String(40), primary_key=True, info=_personal("tombstone", "cbid", "left")),
    Column("value", LargeBinary, nullable=False),
)

accounts: Final = partial(_table, RowOwner(account="id"))(
    "accounts",
    Column("id", String(40), primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("disabled_at", Instant),
    Column("closed_at", Instant),
    # After how many years the evidence of its orders ends; NULL: never.
    Column("evidence_years", Integer),
    # How many people decide on a buyer who waits: 1, or 2.
    Column("reviewers", Integer, nullable=False, server_default="1"),
    # Within how many days it has to answer a person's request.
    Column("request_days", Integer, nullable=False, server_default="45"),
    # Why, and until when, its providers' whole responses are kept; NULL: not beyond the decision.
    Column("responses_reason", Text),
    Column("responses_until", Instant),
)

# The pages that may embed the component or be returned to, with live keys.
account_origins: Final = _of_account(
    "account_origins",
    _account(),
    Column("origin", String(300), nullable=False),
    Column("added_at", Instant, nullable=False),
    PrimaryKeyConstraint("account_id", "origin"),
)

# How buyers see an account; NULL means the same as no row.
account_brands: Final = _of_account(
    "account_brands",
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("name", String(100)),
    Column("color", String(7)),
    Column("logo", LargeBinary),
    Column("logo_digest", String(64)),
    Column("contact_url", String(2048)),
    Column("privacy_url", String(2048)),
    Column("support_email", String(254)),
    Column("font", String(8)),
    Column("initials", String(16)),
)

api_keys: Final = _in_mode(
    "api_keys",
    Column("id", String(40), primary_key=True),
    *_account_and_mode(),
    Column("kind", String(2), nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("hint", String(40), nullable=False),
    # NULL: whatever a vendor's server needs, in this release and later ones.
    Column("scopes", Text),
    Column("created_at", Instant, nullable=False),
    Column("lifetime_seconds", BigInteger),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    Column("replaces", ForeignKey("api_keys.id")),
    # The person; NULL: it was made on the machine.
    Column("made_by", String(40)),
    # The day, in UTC, and how often a key of a person read personal data on it; NULL: its reads are
    # in the audit.
    Column("read_on", Instant),
    Column("reads", BigInteger),
    Column("name", String(100)),
    Index(None, "account_id"),
)

notice_versions: Final = _of_deployment(
    "notice_versions",
    Column("notice_id", String(64), primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

notice_events: Final = _of_deployment(
    "notice_events",
    Column("id", String(40), primary_key=True),
    *_required(String(64), "notice_id", "version"),
    Column("type", String(20), nullable=False),
    Column("at", Instant, nullable=False),
    Column("details", Text, nullable=False),
    ForeignKeyConstraint(
        ["notice_id", "version"], ["notice_versions.notice_id", "notice_versions.version"]
    ),
)

records: Final = _in_mode(
    "records",
    Column("id", String(40), primary_key=True, info=_personal("evidence")),
    *_account_and_mode(),
    Column("type", String(20), nullable=False),
    Column("notice_id", String(64)),
    Column("at", Instant, nullable=False),
    *_required(LargeBinary, "digest", "body"),
    Index(None, "account_id", "mode", "type", "id"),
    # For a list by notice, which may be rare among the records of its account.
    Index(None, "account_id", "mode", "type", "notice_id", "id"),
)

disclosures: Final = _in_mode(
    "disclosures",
    # Rows are written with their record, by the thousand, without lookups. Account and mode are
    # copied from the record, which proves them.
    Column("record_id", String(40), primary_key=True),
    *_account_and_mode(refers=False),
    _hidden("session_index", "order", "session_id"),
    _hidden("cbid_index", "order", "cbid"),
    _hidden("payload", "content", nullable=False),
    # For the vendor's order reference; most records have none.
    _hidden("reference_index", "order", "order_reference"),
    # Blind indexes are made per account already. They are random: see `core/log/blind_runs.py` for
    # how the embedded database looks them up.
    Index(None, "session_index", info={ONLY_ON: "postgresql"}),
    Index(None, "cbid_index", info={ONLY_ON: "postgresql"}),
    Index(None, "reference_index", info={ONLY_ON: "postgresql", **_REFERENCED}),
)

# Of new disclosures, on the embedded database: a trigger writes them, another deletes them.
blind_recent: Final = _part_of("records", "record_id")(
    "blind_recent",
    Column("record_id", String(40), primary_key=True),
    _hidden("session_index", "order", "session_id"),
    _hidden("cbid_index", "order", "cbid"),
    _hidden("reference_index", "order", "order_reference"),
    sqlite_with_rowid=False,
)

# Of all others.
blind_runs: Final = _part_of("records", "record_id")(
    "blind_runs",
    Column("run", Integer, primary_key=True, autoincrement=False),
    _hidden("key", "order", "session_id", "cbid", "order_reference", primary_key=True),
    Column("record_id", String(40), primary_key=True),
    sqlite_with_rowid=False,
)

buyers: Final = _shared(
    "buyers",
    _cbid("tombstone", primary_key=True),
    *_account_and_mode(),
    Column("status", String(20), nullable=False, info=_personal("tombstone")),
    Column("reasons", Text, nullable=False, info=_personal("buyer")),
    Column("verified_at", Instant, info=_personal("buyer")),
    Column("expires_at", Instant, info=_personal("buyer")),
    Column("simulated", Boolean, nullable=False),
    # Facts proved by real verifications; nothing personal.
    Column(
        "proofs", Text, nullable=False, info=_personal("buyer", "proved_zip", "provider_session")
    ),
    # The buyer that this one turned out to be.
    Column("same_as", String(40), info=_personal("tombstone")),
    # When to report that it has expired; NULL: there is nothing to report, or it was reported.
    Column("expiry_due_at", Instant, info=_personal("buyer")),
    # When to report that it is about to expire; NULL as above.
    Column("reminder_due_at", Instant, info=_personal("buyer")),
    # The account whose attempt led to the reasons: only that account sees them.
    Column("attempted_by", String(40), info=_personal("buyer")),
    # The verification after which an operator took the buyer out of the review queue.
    Column("dismissed", String(40), info=_personal("buyer")),
    # The proposal of the first of two reviewers, as JSON; a ZIP code only as its keyed hash.
    Column("proposal", Text, info=_personal("buyer", "review")),
    # For the review queue.
    Index(None, "attempted_by", "status"),
    # For the sweep that reports expired verifications.
    *_indexes("expiry_due_at", "reminder_due_at"),
    # For the verifications of one sandbox, whose clock is ahead.
    Index(None, "account_id", "mode", "expiry_due_at"),
    Index(None, "account_id", "mode", "reminder_due_at"),
    Index(None, "same_as"),
)

verifications: Final = _in_mode(
    "verifications",
    Column("id", String(40), primary_key=True),
    *_account_and_mode(),
    Column("cbid", ForeignKey("buyers.cbid"), nullable=False, info=_personal("check")),
    Column("provider", String(20), nullable=False),
    _hidden("subject_index", "check", "buyer", "provider_session"),
    _hidden("zip_index", "check", "zip"),
    Column("status", String(20), nullable=False),
    Column("reasons", Text, nullable=False, info=_personal("check")),
    Column("at", Instant, nullable=False),
    # The provider session; NULL in the sandbox.
    _hidden("session_index", "check", "provider_session"),
    Index(None, "cbid"),
)

zip_attempts: Final = _in_mode(
    "zip_attempts",
    *_account_and_mode(),
    _hidden("subject_index", "buyer", *_OF_TRIES, nullable=False),
    _hidden("zip_index", "buyer", "zip", nullable=False),
    Column("at", Instant, nullable=False),
    UniqueConstraint("account_id", "mode", "subject_index", "zip_index"),
    Index(None, "at"),
    # For one subject at all accounts.
    Index(None, "subject_index"),
)

# The shares of rate limits that servers have leased, on PostgreSQL alone: unlogged, gone after a
# failover.
rate_shares: Final = _of_deployment(
    "rate_shares",
    Column("name", LargeBinary, primary_key=True),
    # By the clock of the database, in microseconds.
    Column("empty_at", BigInteger, nullable=False),
    Column("granted", Integer, nullable=False),
)

idempotency_keys: Final = _in_mode(
    "idempotency_keys",
    Column("slot", LargeBinary, nullable=False),
    # The account of the key in the request: no lookup is needed.
    *_account_and_mode(refers=False),
    Column("fingerprint", LargeBinary, nullable=False),
    _hidden("response", "order", nullable=False),
    *_required(Instant, "created_at", "expires_at"),
    # The buyer, acknowledgment, clearance or session that the response names and that can be
    # erased. NULL: none; empty: unknown, read the response. The response about an acknowledgment
    # was kept when that was made, and is found by this time.
    Column("about", String(40), info=_personal("order")),
    # Slots are random: see `kept_slots` for how the embedded database looks them up.
    PrimaryKeyConstraint("slot").ddl_if(dialect="postgresql"),
    Index(None, "expires_at", info={ONLY_ON: "postgresql"}),
    Index(None, "expires_at", "slot", info={ONLY_ON: "sqlite"}),
    Index(None, "about", info={WHERE: ABOUT_OTHERS}),
)

# The first 8 bytes of each slot, on the embedded database, in sorted levels 0 to 3. Triggers write
# it to level 0, and move some 256 at a time from each level to the next, where they are near each
# other: so few pages change. A slot whose response is deleted before its time stays until then in
# levels 1 to 3.
kept_slots: Final = _of_deployment(
    "kept_slots",
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("slot", LargeBinary, primary_key=True),
    Column("expires_at", Instant, nullable=False),
    sqlite_with_rowid=False,
)

deployment_records: Final = _of_deployment(
    "deployment_records",
    # Facts of the deployment itself, which belong to no account: a notice event, a key rotation.
    Column("id", String(40), primary_key=True),
    _mode(),
    Column("type", String(20), nullable=False),
    Column("at", Instant, nullable=False),
    *_required(LargeBinary, "digest", "body"),
)

# Every record of a party; the highest number is in force.
parties: Final = partial(_table, RowOwner(account="scope", mode="mode"))(
    "parties",
    # An account's id, or `deployment` for the operator.
    Column("scope", String(40), nullable=False),
    _mode(),
    Column("type", String(20), nullable=False),
    Column("number", Integer, nullable=False),
    Column("record_id", String(40), nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    PrimaryKeyConstraint("scope", "mode", "type", "number"),
)

data_keys: Final = partial(_table, RowOwner(account="scope"))(
    "data_keys",
    Column("id", String(40), primary_key=True),
    # An account's id, or `deployment` for the deployment's own secrets.
    Column("scope", String(40), nullable=False),
    Column("month", Integer, nullable=False),
    Column("wrapped", LargeBinary, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("scope", "month"),
)

# Kept out of every backup that lives long: without its row, a ciphertext is noise.
shred_keys: Final = _part_of("records pending_sessions checkout_sessions", "record_id")(
    "shred_keys",
    Column("record_id", String(40), primary_key=True),
    Column("key", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

erasures: Final = _part_of("records", "record_id")(
    "erasures",
    Column("record_id", String(40), primary_key=True),
    Column("at", Instant, nullable=False),
    # The erasure's own record.
    Column("erasure_id", String(40), nullable=False),
)

# Records that are here no more, since the evidence of their account has ended. Their entries in the
# log stay.
ended_records: Final = _in_mode(
    "ended_records",
    Column("record_id", String(40), primary_key=True),
    # Rows are written by the thousand, without lookups.
    *_account_and_mode(refers=False),
    Column("at", Instant, nullable=False),
)

# Names of buyers in `audit_log` and `legal_holds`: random identifiers, which lose their meaning
# with the buyer while those rows stay.
buyer_references: Final = _shared(
    "buyer_references",
    Column("reference", String(40), primary_key=True),
    _cbid("tombstone", nullable=False),
    Index(None, "cbid"),
)

# Records that were to be erased and that a hold keeps: they are erased when it has ended.
waiting_erasures: Final = _part_of("records", "record_id")(
    "waiting_erasures",
    Column("record_id", String(40), primary_key=True),
    Column("reason", String(20), nullable=False),
    Column("at", Instant, nullable=False),
)

legal_holds: Final = _in_mode(
    "legal_holds",
    Column("id", String(40), primary_key=True),
    # The object to keep from erasure: a record, a buyer (by reference) or a whole account.
    Column("subject", String(80), nullable=False),
    Column("reason", Text, nullable=False),
    Column("placed_at", Instant, nullable=False),
    Column("released_at", Instant),
    # The matter that it is part of; NULL: none.
    Column("matter_id", String(40)),
    # The account and mode that own the hold and that it binds. Empty: the deployment's, which binds
    # both modes.
    Column("account_id", String(40), nullable=False, server_default=text("''")),
    Column("mode", String(4), CheckConstraint("mode IN ('test', 'live')", name="mode")),
    Index(None, "subject"),
    Index(None, "account_id", "mode", "id"),
)

# Legal matters, each of which can hold several orders.
matters: Final = _in_mode(
    "matters",
    Column("id", String(40), primary_key=True),
    # Empty: of the whole deployment.
    *_account_and_mode(refers=False),
    Column("name", Text, nullable=False),
    Column("opened_at", Instant, nullable=False),
    # When all its holds were released.
    Column("closed_at", Instant),
)

logs: Final = _of_deployment(
    "logs",
    Column("id", Integer, primary_key=True, autoincrement=False),
    _mode(),
    Column("epoch", Integer, nullable=False),
    Column("origin", String(300), nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("mode", "epoch"),
)

log_keys: Final = _of_deployment(
    "log_keys",
    # An ML-DSA-44 key has 1,312 bytes.
    Column("vkey", String(2100), primary_key=True),
    Column("log_id", ForeignKey("logs.id"), nullable=False),
    # The private key, sealed by the vault; or its id on the PKCS#11 token that keeps it.
    Column("seed", LargeBinary),
    Column("token_id", LargeBinary),
    Column("created_at", Instant, nullable=False),
    Column("retires_at", Instant),
    Index(None, "log_id"),
)

# Approvers of changes of log keys; the row with the highest number is in force.
log_rosters: Final = _of_deployment(
    "log_rosters",
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("threshold", Integer, nullable=False),
    # Verifier keys, one a line.
    Column("approvers", Text, nullable=False),
    Column("proposal_id", String(40), nullable=False),
    Column("at", Instant, nullable=False),
)

log_proposals: Final = _of_deployment(
    "log_proposals",
    Column("id", String(40), primary_key=True),
    Column("log_id", ForeignKey("logs.id"), nullable=False),
    # The text that approvers sign.
    Column("text", LargeBinary, nullable=False),
    # The keys that it would add, as JSON, with secrets sealed as in log_keys.
    Column("keys", LargeBinary, nullable=False),
    Column("at", Instant, nullable=False),
)

log_approvals: Final = _of_deployment(
    "log_approvals",
    Column("proposal_id", ForeignKey("log_proposals.id"), primary_key=True),
    Column("approver", String(400), primary_key=True),
    Column("line", LargeBinary, nullable=False),
    Column("at", Instant, nullable=False),
)

# The one row of a log that changes; PostgreSQL's sequencers compare and swap it.
log_heads: Final = _of_deployment(
    "log_heads",
    Column("log_id", ForeignKey("logs.id"), primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("at", Instant, nullable=False),
    # Grows with every change of the log's keys.
    Column("keys_revision", Integer, nullable=False),
)

log_entries: Final = _of_deployment(
    "log_entries",
    Column("log_id", Integer, primary_key=True, autoincrement=False),
    Column("leaf_index", BigInteger, primary_key=True, autoincrement=False),
    Column("record_id", String(40), nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

log_tiles: Final = _of_deployment(
    "log_tiles",
    # Complete tiles only; the edge is made from entries and from the roots of tiles below.
    Column("log_id", Integer, primary_key=True, autoincrement=False),
    Column("level", Integer, primary_key=True, autoincrement=False),
    Column("tile_index", BigInteger, primary_key=True, autoincrement=False),
    *_required(LargeBinary, "hashes", "root"),
)

checkpoints: Final = _of_deployment(
    "checkpoints",
    Column("log_id", Integer, primary_key=True, autoincrement=False),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    *_required(LargeBinary, "root", "note"),
    Column("at", Instant, nullable=False),
)

# Statements of third parties about a checkpoint: a witness's cosignature, a timestamp authority's
# token.
anchors: Final = _of_deployment(
    "anchors",
    Column("log_id", Integer, primary_key=True, autoincrement=False),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(20), primary_key=True),
    Column("name", String(300), primary_key=True),
    Column("at", Instant, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    # Hexadecimal SHA-256 of the body, by which a later time-stamp says that it renews this one.
    Column("digest", String(64), nullable=False),
    Column("renews", String(64)),
    # When the first of the certificates in a time-stamp ends.
    Column("ends_at", Instant),
    *_indexes("renews", "ends_at"),
)

# Records that are committed and whose log entry is not written yet.
log_pending: Final = _of_deployment(
    "log_pending",
    Column("record_id", String(40), primary_key=True),
    _mode(),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# One document, one buyer. For a revoked buyer it is kept when the buyer is erased.
buyer_documents: Final = _shared(
    "buyer_documents",
    _mode(),
    # A keyed hash of issuer, type and number.
    _hidden("fingerprint", "tombstone", "document", nullable=False),
    _cbid("tombstone", nullable=False),
    PrimaryKeyConstraint("mode", "fingerprint"),
    Index(None, "cbid"),
)

# One provider session, one buyer. Until the provider says whom a session is about, it has one buyer
# for each reference in the requests.
provider_sessions: Final = _shared(
    "provider_sessions",
    _mode(),
    _hidden("session_index", "tombstone", *_OF_SESSION, nullable=False),
    _cbid("tombstone", nullable=False),
    # A keyed hash of the reference that the provider has named.
    _hidden("reference_index", "tombstone", "subject_reference"),
    Column("verified_at", Instant),
    PrimaryKeyConstraint("mode", "session_index"),
    Index(None, "cbid"),
)

# Sessions that a provider has not decided, to be polled.
pending_sessions: Final = _in_mode(
    "pending_sessions",
    # Its shred key is found under this id.
    Column("id", String(40), primary_key=True),
    *_account_and_mode(),
    # Finds it for a message of the provider.
    _hidden("session_index", "check", "provider_session", nullable=False, index=True),
    # The session, or the session and the reference of the request.
    _hidden("asked_index", "check", *_OF_SESSION, nullable=False),
    # NULL: a session that we started, about which the provider has sent nothing yet.
    _cbid("check"),
    # The request: session id, ZIP code and subject, sealed by the vault.
    _hidden("request", "check", nullable=False),
    Column("polls", Integer, nullable=False),
    *_required(Instant, "created_at", "next_poll_at"),
    UniqueConstraint("account_id", "mode", "asked_index"),
    *_indexes("next_poll_at", "cbid"),
)

# The provider sessions that this service started, each for one attempt in a checkout session (the
# reference), and the newest decision about each.
started_checks: Final = _in_mode(
    "started_checks",
    Column("reference", String(40), nullable=False),
    Column("attempt", Integer, nullable=False),
    *_account_and_mode(),
    Column("provider", String(20), nullable=False),
    _hidden("session_index", "check", "provider_session", nullable=False),
    # The keyed hash of the ZIP code that it was started for: other questions do not count here.
    _hidden("zip_index", "check", "zip", nullable=False),
    # Grows with each decision; 0: none yet.
    Column("revision", Integer, nullable=False),
    _cbid("check"),
    Column("verification_id", String(40)),
    Column("status", String(20)),
    Column("reasons", Text, info=_personal("check")),
    *_required(Instant, "started_at", "changed_at"),
    # A repeated start can make a second session where a provider does not recognise repetitions.
    PrimaryKeyConstraint("reference", "attempt", "session_index"),
    UniqueConstraint("account_id", "mode", "session_index"),
    *_indexes("cbid", "started_at"),
)

# Messages of providers that were acted on: each only once.
provider_messages: Final = _of_account(
    "provider_messages",
    _account(),
    _hidden("message_index", "check", "provider_message", nullable=False),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("account_id", "message_index"),
    Index(None, "at"),
)

# The provider's exact responses and the decision from them, sealed by the vault.
verification_evidence: Final = _in_mode(
    "verification_evidence",
    Column("record_id", ForeignKey("records.id"), primary_key=True),
    *_account_and_mode(refers=False),
    _hidden("payload", "content", nullable=False),
    # The provider's whole responses, under the same shred key, and when they go; NULL: gone.
    _hidden("response", "content"),
    Column("whole_until", Instant),
    Index(None, "whole_until", info={WHERE: "whole_until IS NOT NULL"}),
)

verification_settings: Final = _of_account(
    "verification_settings",
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("provider", String(20), nullable=False),
    Column("base_url", Text),
    Column("rules", Text, nullable=False),
    # Sealed by the vault.
    Column("credentials", LargeBinary, nullable=False),
    Column("changed_at", Instant, nullable=False),
)

# The second and further providers of an account, and providers of its test keys: the provider's own
# test mode.
further_providers: Final = _in_mode(
    "further_providers",
    *_account_and_mode(),
    Column("provider", String(20), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("base_url", Text),
    # Sealed by the vault.
    Column("credentials", LargeBinary, nullable=False),
    Column("changed_at", Instant, nullable=False),
    PrimaryKeyConstraint("account_id", "mode", "provider"),
)

# Who changed or looked at what from the command line.
audit_log: Final = _part_of("audit_owners", "id", "entry_id")(
    "audit_log",
    Column("id", String(40), primary_key=True),
    Column("at", Instant, nullable=False),
    Column("actor", String(100), nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", String(80), nullable=False),
    Column("details", Text, nullable=False),
    Index(None, "subject"),
)

# The accounts whose audit contains an entry of `audit_log`; the deployment's audit has all entries.
# An act on an account as a whole has a row for each mode.
audit_owners: Final = _in_mode(
    "audit_owners",
    *_account_and_mode(refers=False),
    Column("entry_id", String(40), nullable=False),
    PrimaryKeyConstraint("account_id", "mode", "entry_id"),
)

# The entries of `audit_log` as a hash chain, in order: each digest covers a random salt, the digest
# before it and the entry.
audit_chain: Final = _of_deployment(
    "audit_chain",
    # Counted from 1.
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("entry_id", String(40), nullable=False, unique=True),
    *_required(LargeBinary, "salt", "digest"),
)

# Events that a transaction writes for an account and a mode. Acknowledgments that are written
# together share a row: see `core/events/sql.py`.
events: Final = _in_mode(
    "events",
    # The number of the event, of several the last one's. On the embedded database it is the rowid,
    # which its single writer assigns in order.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    # PostgreSQL: the number of the writing transaction, by which readers know what may still
    # appear before this row. 0 on the embedded database.
    Column("tx", BigInteger, nullable=False),
    # Account and mode of the object. Rows are written by the thousand, without lookups.
    *_account_and_mode(refers=False),
    Column("type", String(30), nullable=False),
    # Empty: the buyer that it was about is erased.
    Column("object_id", String(64), nullable=False, info=_personal("buyer")),
    Column("version", String(64)),
    Column("at", Instant, nullable=False),
    # Whether a test key triggered it, without a real act.
    Column("triggered", Boolean, nullable=False, server_default=false()),
    # For a buyer, a JSON array of codes: why it is not verified, for the account that asked.
    Column("reasons", Text, info=_personal("buyer")),
    # For several events, the number of the first one, and their objects.
    Column("first_seq", BigInteger),
    Column("objects", Text),
    Index(None, "account_id", "mode", "tx", "seq"),
    Index(None, "account_id", "mode", "at"),
    # For erasing: the events of one buyer.
    Index("ix_events_of_buyers", "object_id", info={WHERE: EVENT_OF_BUYER}),
    # For the figures of a day: it leaves out events of acknowledgments, the most frequent ones.
    Index("ix_events_of_day", *_OF_DAY, info={WHERE: EVENT_OF_DAY}),
)

webhook_endpoints: Final = _in_mode(
    "webhook_endpoints",
    Column("id", String(40), primary_key=True),
    *_account_and_mode(),
    *_required(Text, "url", "description"),
    # NULL: all of them.
    Column("event_types", Text),
    Column("created_at", Instant, nullable=False),
    Column("disabled_at", Instant),
    Column("disabled_reason", String(20)),
    Column("deleted_at", Instant),
    # Where in the order of events the next deliveries are made from.
    *_required(BigInteger, "cursor_tx", "cursor_seq"),
    # When the cursor was last set back by a recovery.
    Column("recovered_at", Instant),
    Index(None, "account_id", "mode"),
)

webhook_secrets: Final = _part_of("webhook_endpoints", "endpoint_id")(
    "webhook_secrets",
    Column("id", String(40), primary_key=True),
    Column("endpoint_id", ForeignKey("webhook_endpoints.id"), nullable=False),
    Column("public_key", String(60), nullable=False),
    # The shared secret and the private key, sealed by the vault.
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Index(None, "endpoint_id"),
)

webhook_deliveries: Final = _part_of("webhook_endpoints", "endpoint_id")(
    "webhook_deliveries",
    Column("endpoint_id", String(40), primary_key=True),
    Column("event_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("status", String(10), nullable=False),
    # How many attempts were made, and how many of them belong to the current round of the schedule.
    *_required(Integer, "attempts", "step"),
    Column("created_at", Instant, nullable=False),
    # When to attempt it, or when the lease of the process that does is over; NULL: it is finished.
    Column("due_at", Instant),
    # What the endpoint returned with the last attempt, if it refused, sealed by the vault: a
    # receiver may name anybody. NULL after seven days, and once the account erases a buyer.
    _hidden("response", "buyer"),
    Index(None, "endpoint_id", "due_at"),
    Index(None, "created_at", info={WHERE: "response IS NOT NULL"}),
    sqlite_with_rowid=False,
)

webhook_attempts: Final = _part_of("webhook_endpoints", "endpoint_id")(
    "webhook_attempts",
    Column("endpoint_id", String(40), primary_key=True),
    Column("event_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("status", Integer),
    sqlite_with_rowid=False,
)

# Buyers whose orders a vendor refuses, whatever their status; other accounts cannot see it.
buyer_blocks: Final = _in_mode(
    "buyer_blocks",
    *_account_and_mode(),
    _cbid("buyer", nullable=False),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("account_id", "mode", "cbid"),
    Index(None, "cbid"),
)

# One row per decision; its content and its buyer are in its record.
clearances: Final = _in_mode(
    "clearances",
    # The id of the record. Rows are written by the thousand, without lookups.
    Column("id", String(40), primary_key=True, info=_personal("evidence")),
    *_account_and_mode(refers=False),
    # NULL if the value in the request cannot be an id.
    Column("ack_id", String(40)),
    # Of the signing key; NULL, as is the next column, unless it was granted.
    Column("kid", String(60)),
    Column("expires_at", Instant),
    Column("at", Instant, nullable=False),
    Index(None, "ack_id"),
    # For the figures of a day. SQLite reads no row for a column that is in the index.
    Index("ix_clearances_refused", "account_id", "mode", "at", "kid", info={WHERE: "kid IS NULL"}),
)

# One acknowledgment, one buyer and one order.
acknowledgment_uses: Final = _in_mode(
    "acknowledgment_uses",
    Column("ack_id", String(40), primary_key=True, info=_personal("evidence")),
    *_account_and_mode(refers=False),
    # NULL once the buyer or the acknowledgment is erased; the keyed hashes then are random bytes.
    _cbid("order"),
    _hidden("cbid_index", "order", "cbid", nullable=False),
    # The keyed hash of the order that consumed it; NULL until one is cleared.
    _hidden("order_index", "order", "order"),
    Column("clearance_id", String(40)),
    Column("closed_at", Instant),
    # The clearance of the first report that something was shipped, and the time of a payment that
    # was reported while a clearance was valid.
    Column("shipped_under", String(40)),
    Column("paid_at", Instant),
    Index(None, "cbid"),
)

# Reports of vendors about an order; the content is in the record.
fulfilments: Final = _in_mode(
    "fulfilments",
    Column("id", String(40), primary_key=True, info=_personal("evidence")),
    *_account_and_mode(refers=False),
    *_required(String(40), "clearance_id", "ack_id"),
    Column("adult_signature", Boolean, nullable=False),
    # Whether the order was complete with it.
    Column("closes", Boolean, nullable=False),
    Column("at", Instant, nullable=False),
    Index(None, "ack_id"),
)

# Manual overrides of refused orders; the content is in the record.
overrides: Final = _in_mode(
    "overrides",
    Column("id", String(40), primary_key=True, info=_personal("evidence")),
    *_account_and_mode(refers=False),
    Column("clearance_id", String(40), nullable=False, unique=True),
    # The keyed hash of the order as it was refused: a changed one is not covered.
    _hidden("order_index", "order", "order"),
    # Whether a key asked: those are limited by the day.
    Column("by_key", Boolean, nullable=False),
    Column("at", Instant, nullable=False),
    Index(None, "order_index"),
)

# Every act on an order, in the order of time: all rows of one key are the order. An act writes its
# row without reading.
order_acts: Final = _in_mode(
    "order_acts",
    *_account_and_mode(refers=False),
    Column("at", Instant, nullable=False),
    # The keyed hash of the vendor's session, else of the order's reference, else the text of the
    # first act's identifier. It stays after an erasure.
    Column("key", LargeBinary, nullable=False),
    # The session, check or record that it wrote. A check can belong to many orders.
    Column("member_id", String(40), nullable=False),
    Column("notice_id", String(64)),
    # The resulting state; NULL: unchanged.
    Column("state", String(20)),
    # The deadline after which that state changes by itself.
    Column("due_at", Instant),
    # Whether it is found by its key or member. An acknowledgment is found by its disclosures until
    # they are erased: random keys are expensive on the embedded database.
    Column("indexed", Boolean, nullable=False),
    PrimaryKeyConstraint("account_id", "mode", "at", "key", "member_id"),
    Index("ix_order_acts_key", "key", info={WHERE: "indexed"}),
    Index("ix_order_acts_member_id", "member_id", info={WHERE: "indexed"}),
    sqlite_with_rowid=False,
)
# Keys that sign the tokens of clearances: the newest valid key of a mode signs.
clearance_keys: Final = _of_deployment(
    "clearance_keys",
    _mode(),
    Column("number", Integer, nullable=False),
    Column("kid", String(60), nullable=False, unique=True),
    Column("public_key", LargeBinary, nullable=False),
    # The private key, sealed by the vault.
    Column("seed", LargeBinary, nullable=False),
    *_required(Instant, "created_at", "signs_from"),
    PrimaryKeyConstraint("mode", "number"),
)

clearance_settings: Final = _of_account(
    "clearance_settings",
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    # In seconds.
    *_required(Integer, "acknowledgment_max_age", "lifetime"),
    Column("product_class_required", Boolean, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("order_reference_required", Boolean, nullable=False, server_default=false()),
    Column("paid_max_age", Integer, nullable=False, server_default="15552000"),
    Column("overrides_per_day", Integer, nullable=False, server_default="0"),
)

# Links for one buyer and one order. Deleted some time after their end.
checkout_sessions: Final = _in_mode(
    "checkout_sessions",
    # Its shred key is found under this id. Rows are written by the thousand, without lookups.
    Column("id", String(40), primary_key=True),
    *_account_and_mode(refers=False),
    # Grows with each change: a change computed from an older state is not written.
    Column("revision", Integer, nullable=False),
    Column("token_digest", LargeBinary, nullable=False, unique=True),
    _hidden("session_index", "session", "checkout_session.session_id", nullable=False),
    _hidden("cbid_index", "session", "cbid"),
    Column("status", String(10), nullable=False),
    *_required(Instant, "created_at", "expires_at"),
    Column("ended_at", Instant),
    # When to report that it has expired; NULL: it has ended.
    Column("expiry_due_at", Instant),
    Column("ack_id", String(40)),
    Column("clearance_id", String(40)),
    # How many decisions about its identity checks the session has taken over.
    *_required(Integer, "check_revision", "consents"),
    # The vendor's request and the buyer's progress, sealed by the vault; NULL once it is erased.
    _hidden("content", "session"),
    _hidden("reference_index", "session", "order_reference"),
    Index(None, "account_id", "mode", "id"),
    Index(None, "session_index"),
    Index(None, "reference_index", info=_REFERENCED),
    *_indexes("cbid_index", "ack_id", "expiry_due_at", "ended_at"),
    # How many of an account are open.
    Index(
        "ix_checkout_sessions_open",
        *("account_id", "mode", "expiry_due_at"),
        info={WHERE: "expiry_due_at IS NOT NULL"},
    ),
)

# Mails with the link of a buyer's copy: waiting ones, and finished ones without their address.
copy_mails: Final = _in_mode(
    "copy_mails",
    Column("id", String(40), primary_key=True),
    *_account_and_mode(),
    Column("checkout_session_id", String(40), nullable=False, info=_personal("session")),
    Column("created_at", Instant, nullable=False),
    Column("locale", String(8), nullable=False),
    # Sealed by the vault with the shred key of the session; NULL once the mail is gone.
    _hidden("address", "session"),
    # A keyed hash, to count the mails to one address; NULL after a day.
    _hidden("address_index", "session", "copy_address"),
    # When to send it, or when the lease of the sending process ends; NULL: it is gone.
    Column("due_at", Instant),
    Column("attempts", Integer, nullable=False),
    # How many of the attempts may have sent it.
    Column("unsure", Integer, nullable=False),
    # How it has ended.
    Column("outcome", String(10)),
    Index(None, "checkout_session_id"),
    Index(None, "account_id", "mode", "created_at"),
    Index(None, "address_index", info={WHERE: "address_index IS NOT NULL"}),
    Index(None, "due_at", info={WHERE: "due_at IS NOT NULL"}),
)

# Lets a buyer skip a new identity check: a passkey, or a cookie.
remembered: Final = _shared(
    "remembered",
    Column("id", String(40), primary_key=True),
    _mode(),
    _cbid("buyer", nullable=False),
    # `passkey` or `cookie`.
    Column("kind", String(10), nullable=False),
    # The digest of the credential's identifier, or of the cookie.
    _hidden("lookup", "buyer", "passkey", "cookie", nullable=False, unique=True),
    # Of a passkey: the COSE key, the signature counter, and the user handle.
    _hidden("public_key", "buyer"),
    Column("sign_count", BigInteger),
    _hidden("user_handle", "buyer", "user_handle"),
    # Earlier sign-ins are not valid any more; NULL: never signed out.
    Column("signed_out_at", Instant),
    *_required(Instant, "created_at", "last_used_at", "expires_at"),
    *_indexes("cbid", "expires_at"),
)

# Requests for a remembered buyer and their times: shown to the buyer at /buyer.
remembered_uses: Final = _shared(
    "remembered_uses",
    Column("id", String(40), primary_key=True),
    _mode(),
    _cbid("buyer", nullable=False),
    Column("account_id", String(40), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("verified", Boolean, nullable=False),
    Column("at", Instant, nullable=False),
    *_indexes("cbid", "at"),
)

# Buyers who asked for erasure, while a server may not erase or a hold keeps something.
erasure_requests: Final = _shared(
    "erasure_requests",
    _cbid("buyer", primary_key=True),
    Column("requested_at", Instant, nullable=False),
)

# How far ahead the sandbox of an account is; without a row it goes by real time.
test_clocks: Final = _of_account(
    "test_clocks",
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("ahead_ms", BigInteger, nullable=False),
    Column("changed_at", Instant, nullable=False),
)

# Outcomes that verifications in the sandbox of an account get in place of their own.
test_faults: Final = _of_account(
    "test_faults",
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("fault", String(30), nullable=False),
    # NULL: all calls, until it is cleared.
    Column("calls_left", Integer),
    Column("delay_ms", Integer, nullable=False),
    Column("planned_at", Instant, nullable=False),
)

# People who may use the console: staff of the deployment, and members of accounts.
people: Final = _of_deployment(
    "people",
    Column("id", String(40), primary_key=True),
    Column("name", String(100), nullable=False, info=_personal("person")),
    Column("created_at", Instant, nullable=False),
    # Where alerts go, sealed by the vault, and when the code that proves it was sent there.
    _hidden("address", "person"),
    Column("code_sent_at", Instant),
    # When the person was told last; NULL: the address is not proved.
    Column("told_at", Instant),
)

person_grants: Final = _of_account(
    "person_grants",
    Column("id", String(40), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    # NULL: for the whole deployment.
    Column("account_id", ForeignKey("accounts.id")),
    Column("role", String(12), nullable=False),
    Column("granted_at", Instant, nullable=False),
    # The person, or the user of the operating system.
    Column("granted_by", String(100), nullable=False),
    UniqueConstraint("person_id", "account_id"),
    Index(None, "person_id", unique=True, info={WHERE: "account_id IS NULL"}),
    Index(None, "account_id"),
)

# Separate from the passkeys of buyers, who are remembered at the same address.
person_passkeys: Final = _of_deployment(
    "person_passkeys",
    Column("id", String(40), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    # The digest of the credential's identifier.
    _hidden("lookup", "person", "passkey", nullable=False, unique=True),
    Column("public_key", LargeBinary, nullable=False),
    Column("sign_count", BigInteger, nullable=False),
    *_required(Instant, "created_at", "last_used_at"),
    Index(None, "person_id"),
)

# For a person who signs in at an OpenID Connect provider.
person_subjects: Final = _of_deployment(
    "person_subjects",
    Column("person_id", ForeignKey("people.id"), primary_key=True),
    # The digest of the issuer and its subject.
    _hidden("lookup", "person", "subject", nullable=False, unique=True),
    *_required(Instant, "created_at", "last_used_at"),
)

# Sign-in links for a person, for the first time or a new passkey: the newest of each person, until
# used.
person_links: Final = _of_deployment(
    "person_links",
    Column("id", String(40), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False, unique=True),
    # `invitation` or `way_back`.
    Column("kind", String(10), nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    *_required(Instant, "created_at", "expires_at"),
)

# Sessions of signed-in people. The token is kept as a keyed hash.
person_sessions: Final = _of_deployment(
    "person_sessions",
    Column("id", String(40), primary_key=True),
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    *_required(Instant, "created_at", "last_used_at"),
    # When the passkey was used last, or the provider last asked the person to sign in.
    Column("passkey_at", Instant, nullable=False),
    Index(None, "person_id"),
)
