"""All that is stored about a buyer, found by the declarations by which an erasure erases it."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, get_args

import msgspec
from sqlalchemy import Boolean, Connection, LargeBinary, Table, literal_column, or_, select

from countersign.base.db.statements import chunks
from countersign.base.db.tables import (
    EVENT_OF_BUYER,
    OWNER,
    PERSONAL_INFO,
    GoesWith,
    accounts,
    disclosures,
    events,
    pending_sessions,
    personal_columns,
    records,
    shred_keys,
    verification_evidence,
)
from countersign.base.errors import DatabasePermissionDenied, UnknownSubject
from countersign.base.values import from_ns
from countersign.core.access.audit import find_audit
from countersign.core.access.reach import DEPLOYMENT, Reach, mode_of_buyer
from countersign.core.buyers.admin import readable
from countersign.core.buyers.model import BuyerStatus
from countersign.core.log.record import open_disclosures
from countersign.core.orders.sql import orders_of
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.erase import plan_erasure
from countersign.core.privacy.held import find_held
from countersign.core.privacy.model import ErasableBuyer, Plan
from countersign.core.privacy.person_sql import Person, identifiers_of, pending_of
from countersign.core.privacy.room import Privacy
from countersign.core.vault.vault import Place
from countersign_evidence.disclosure import read_disclosure
from countersign_evidence.offline.verify import write_zip

if TYPE_CHECKING:
    from jinja2 import Template

WORDS: Final = tomllib.loads((resources.files(__package__) / "export.toml").read_text("utf-8"))
_NAMES: Final = frozenset(WORDS["found_by"])
_HIDDEN: Final = frozenset(WORDS["hidden"])
_SHOWN: Final = frozenset(WORDS["shown"])
_KEYED_BY: Final = ("checkout_session_id", "record_id", "id")
"""The column with the name of a row's shred key: the first that it has."""
Rows: TypeAlias = list[tuple[str, dict[str, Any]]]
"""Each with its table."""


async def all_about(privacy: Privacy, cbid: str, reach: Reach) -> dict[str, Any]:
    """All that is stored in reach about a buyer, as JSON, found as `plan_erasure` finds it.

    What names another buyer is left out: a check of another person in the same checkout session, or
    a refused clearance.

    Raises UnknownSubject if there is no such buyer in reach.
    """
    scan = privacy.access.database.scan
    plan = await plan_erasure(privacy, cbid, reach, with_acknowledgments=True)
    if plan.buyer is None:
        raise UnknownSubject(f"The buyer {cbid!r} does not exist, or was erased.")
    known, rows, unreadable = await scan(known_by, plan, plan.buyer), Rows(), list[str]()
    for table in exported_tables():
        try:
            found = await scan(rows_of, plan, table, known)
        except DatabasePermissionDenied:  # of servers on PostgreSQL, to providers' responses
            unreadable.append(str(table.name))
            continue
        for row in found:
            rows.append((str(table.name), await _opened(privacy, table, row)))
            await asyncio.sleep(0)  # other requests go on beside a large export
    return await scan(_joined, privacy, plan, known, rows) | {"unreadable": unreadable}


async def packed(found: dict[str, Any], locale: str) -> bytes:
    """The ZIP file of an export: a page in this language without scripts, and the same as JSON."""
    words = WORDS[locale]
    whole = found | {"ends": {name: words["tables"][name] for name in found["tables"]}}
    sections = [name for name in words["sections"] if name in found]
    page = partial(_page().render, found=whole, words=words, sections=sections, locale=locale)
    # It may be large: no work for the event loop.
    return await asyncio.to_thread(
        lambda: write_zip({"index.html": page().encode(), "data.json": msgspec.json.encode(whole)})
    )


@cache
def _page() -> Template:
    from jinja2 import Environment, PackageLoader  # noqa: PLC0415 - seldom

    made = Environment(loader=PackageLoader(__package__, ""), autoescape=True, trim_blocks=True)
    return made.get_template("export.html")


def exported_tables() -> list[Table]:
    """The tables that an export shows, by their declarations."""
    declared = personal_columns(*{*get_args(GoesWith)} - {"person"})
    tables = dict.fromkeys(column.table for column in declared)
    return [table for table in tables if table.name not in WORDS["left_out"]]


class Known(NamedTuple):
    """By what the rows of a person are found."""

    names: frozenset[str]
    """The identifiers of the person."""
    ids: frozenset[str]
    """Those too of all that the plan erases."""


def known_by(connection: Connection, plan: Plan, buyer: ErasableBuyer) -> Known:
    """Whose rows an export has."""
    mine = pending_of(Person(buyer.cbids, buyer.sessions), plan.reach)
    polled = connection.execute(select(pending_sessions.c.id).where(mine)).scalars()
    names = frozenset(identifiers_of(connection, plan.subject))
    return Known(names, names.union(plan.ids, polled))


def rows_of(connection: Connection, plan: Plan, table: Table, known: Known) -> list[dict[str, Any]]:
    """The buyer's rows of a table in reach, with their shred keys."""
    owner = table.info[OWNER]
    if owner.is_shared and plan.reach != DEPLOYMENT:
        return []
    # A test key can name a live buyer.
    within = [table.c.mode == mode_of_buyer(plan.subject)] if "mode" in table.c else []
    within += [plan.reach.rows(table)] if owner.account else []
    within += [literal_column(EVENT_OF_BUYER, Boolean())] if table is events else []
    declared = [c for c in table.c if PERSONAL_INFO in c.info or c.primary_key]
    ways = [c for c in declared if c.name in _NAMES]
    keyed_by = next((table.c[name] for name in _KEYED_BY if name in table.c), ways[0])
    query = select(table, shred_keys.c.key.label("shred_key")).where(*within)
    query = query.outerjoin(shred_keys, shred_keys.c.record_id == keyed_by)
    return [
        dict(row)
        for some in chunks(sorted(known.ids))
        for row in connection.execute(query.where(or_(*(c.in_(some) for c in ways)))).mappings()
    ]


async def _opened(privacy: Privacy, table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as people read it: decrypted, and without keyed hashes."""
    vault, key, id_ = privacy.log.vault.vault, row["shred_key"], _id(row)
    shown = {
        str(c.name): row[c.name]
        for c in table.c
        if c.name not in _HIDDEN and not isinstance(c.type, LargeBinary)
    }
    for column in (c for c in table.c if c.name not in shown and row[c.name] is not None):
        name, value, declared = str(column.name), row[column.name], column.info.get(PERSONAL_INFO)
        if table is records and name == "body":
            shown["record"] = msgspec.json.decode(value)
        elif table is disclosures and name == "payload":
            encoded = await open_disclosures(vault, row["account_id"], id_, value, key)
            found = (read_disclosure(one)[1:] for one in encoded)
            shown["disclosed"] = {name: _unhidden(value) for name, value in found}
        elif key and declared and not declared.fields:
            place = Place(table=table.name, column=name, account=row["account_id"], row_id=id_)
            opened = await vault.open(value, shred_key=key, **place)
            read: Any = msgspec.json.decode(opened) if opened[:1] == b"{" else str(opened, "utf-8")
            is_response = name == "response" and table is verification_evidence
            shown[name] = readable(read) if is_response else _cut(read)
    return shown


def _unhidden(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """What a disclosure has of the buyer."""
    if not isinstance(value, dict):
        return value
    return {name: inner for name, inner in value.items() if name not in _HIDDEN}


def _cut(value: Any) -> Any:  # noqa: ANN401 - a text stays as it is
    """What a sealed value has of the buyer."""
    if isinstance(value, str):
        return value
    kept = {name: inner for name, inner in value.items() if name in _SHOWN and inner is not None}
    nested = {name: _cut(kept[name]) for name in ("reading", "identity") if name in kept}
    return kept | nested | ({"answer": readable(kept["answer"])} if "answer" in kept else {})


def _id(row: Mapping[str, Any]) -> str:
    """The identifier of a row; "": it has none."""
    return next((row[name] for name in ("record_id", "id", "ack_id") if name in row), "")


def _named(row: Mapping[str, Any]) -> set[str]:
    """The buyers that fields name: what a vendor writes elsewhere may look like one."""
    inner = [_named(value) for value in row.values() if isinstance(value, dict)]
    return {row[name] for name in ("cbid", "same_as") if row.get(name)}.union(*inner)


def _joined(
    connection: Connection, privacy: Privacy, plan: Plan, known: Known, rows: Rows
) -> dict[str, Any]:
    """The rows of one identifier as one part of its order, and what is kept until when."""
    found, parts = dict[str, Any](), dict[str, dict[str, Any]]()
    for table, row in rows:
        if _id(row) in known.ids:
            parts.setdefault(_id(row), {"id": _id(row)}).update(row)
        elif _named(row) <= known.names:
            found.setdefault(table, []).append(row)
    parts = {id_: part for id_, part in parts.items() if _named(part) <= known.names}
    held = find_held(connection, privacy.access.secret, [*parts], plan.reach)
    years, kept = sql.find_retention_years(connection), privacy.kept
    ends = {one.record_id: sql.kept_until(one, years) for one in plan.records}
    for id_, part in parts.items():
        if "payload" in part:
            is_verified = part["status"] == BuyerStatus.VERIFIED
            ends[id_] = part["at"] + (kept.verified if is_verified else kept.other)
        part |= {"on_hold": id_ in held, "kept_until": ends.get(id_)}
    orders, left = list[dict[str, Any]](), dict(parts)
    for order in orders_of(connection, plan.reach, [*parts]):
        own = [left.pop(id_) for id_ in sorted(order.members & left.keys())]
        orders += [{"order_id": order.id, "parts": own}] if own else []
    of = {row["account_id"] for _, row in rows if "account_id" in row}
    vendors = select(accounts.c.id, accounts.c.name).where(accounts.c.id.in_(of))
    noting = known.names if plan.reach == DEPLOYMENT else ()
    audit = [one for name in sorted(noting) for one in find_audit(connection, name)]
    return {
        "cbid": plan.subject,
        "made_at": from_ns(privacy.access.clock.time_ns()),
        "vendors": {row.id: row.name for row in connection.execute(vendors)},
        "orders": orders,
        "checks": [*left.values()],
        **found,
        "tables": sorted({table for table, _ in rows}),
        # Not by whom, nor why: a hold's reason is its owner's.
        "audit": [{"at": one.at, "action": one.action} for one in audit],
    }
