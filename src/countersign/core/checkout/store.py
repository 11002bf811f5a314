"""Checkout sessions in the database: a row each, its content sealed.

A change is computed from the read state, and written only if that is still current: of two
concurrent changes one is computed again. In one process the changes of a session take turns, so
that their total cost is linear, not quadratic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import structlog
from msgspec.structs import replace
from sqlalchemy import Connection, Select, delete, select, update

from countersign.base.db.statements import BulkInsert, DriverStatement, SelectAmong
from countersign.base.db.tables import blanks, checkout_sessions, copy_mails, shred_keys
from countersign.base.errors import CheckoutSessionClosed, DamagedValue, NotFound, Overloaded
from countersign.base.values import (
    CHECKOUT_SESSION,
    EARLIER_SESSION,
    MODES,
    Mode,
    Reason,
    from_ms,
    from_ns,
    is_id,
    made_at_ms,
    to_ms,
)
from countersign.core.access.idempotency import (
    IdempotencyEntry,
    Remember,
    keep_answer,
    keep_answers,
)
from countersign.core.access.key import Principal
from countersign.core.access.reach import Reach
from countersign.core.acknowledgments.acknowledge import CHECKOUT_FIELD
from countersign.core.checkout.model import KEPT, Content, Session, Status, seen_by
from countersign.core.checkout.room import Checkout
from countersign.core.checkout.schemas import CheckoutSessionsQuery
from countersign.core.events.model import EventType, NewEvent
from countersign.core.events.sql import write_events
from countersign.core.log.journal import insert_shred_keys
from countersign.core.orders.model import OrderAct, OrderState
from countersign.core.orders.sql import delete_acts, end_waiting, indexed_keys, write_acts
from countersign.core.vault.vault import NONCE_BYTES, DataKey, Place
from countersign_evidence.record import CBID_FIELD, REFERENCE_FIELD

_log: Final = structlog.get_logger("countersign.checkout")

Also: TypeAlias = Callable[[Connection, Sequence[tuple[Any, Session]]], Sequence[Session]]
"""Writes more in the transaction of some changes: given what each of them adds, and its session as
decided, it returns each session as it is with that."""

_Row: TypeAlias = tuple[Any, ...]
"""The columns of `_SELECT`."""

_c: Final = checkout_sessions.c
_READ: Final = (
    *("id", "account_id", "mode", "revision", "token_digest", "status", "created_at", "expires_at"),
    *("ended_at", "ack_id", "clearance_id", "check_revision", "consents"),
)
_SELECT: Final = (
    f"SELECT s.{', s.'.join(_READ)}, k.key, s.content FROM checkout_sessions s"  # noqa: S608 - our own names
    " LEFT JOIN shred_keys k ON k.record_id = s.id WHERE "
)
_select: Final = SelectAmong(_SELECT + "s.id {}")
_select_by_token: Final = SelectAmong(_SELECT + "s.token_digest {}")
_update: Final = DriverStatement(
    "UPDATE checkout_sessions SET revision = ?, status = ?, expires_at = ?, expiry_due_at = ?,"
    " ended_at = ?, ack_id = ?, clearance_id = ?, check_revision = ?, content = ?, cbid_index = ?"
    " WHERE id = ? AND revision = ?"
)
_hold: Final = DriverStatement(
    "UPDATE checkout_sessions SET revision = revision WHERE id = ? AND revision = ?"
)
_STATUSES: Final = {status.value: status for status in Status}
_COLUMNS: Final = (
    *("id", "account_id", "mode", "revision", "token_digest", "session_index", "cbid_index"),
    *("status", "created_at", "expires_at", "expiry_due_at", "content", "check_revision"),
    *("consents", "reference_index"),
)
_insert: Final = BulkInsert(checkout_sessions, *_COLUMNS)
_ROUNDS_MAX: Final = 8
"""Retries of one change that another server or a poll interrupts."""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Content).decode


class NewSession(NamedTuple):
    """A session to write, and its stored response."""

    session: Session
    session_index: bytes
    cbid_index: bytes | None
    reference_index: bytes | None
    order_key: bytes
    content: bytes | None
    kept: IdempotencyEntry | None


def write_new(connection: Connection, new: Sequence[NewSession]) -> Sequence[None]:
    """An act for `write_batched`: write these sessions."""
    rows = []
    for session, session_index, cbid_index, reference_index, _, content, _ in new:
        expires_at = to_ms(session.expires_at)
        rows.append(
            (
                *(session.id, session.account_id, session.mode.value, session.revision),
                *(session.token_digest, session_index, cbid_index, session.status.value),
                *(to_ms(session.created_at), expires_at, expires_at, content, 0, 0),
                reference_index,
            )
        )
    _insert(connection, rows)
    insert_shred_keys(connection, [(item.session.id, item.session.shred_key) for item in new])
    write_acts(connection, (_act(one.session, one.order_key) for one in new))
    keep_answers(connection, [item.kept for item in new if item.kept is not None])
    return [None] * len(new)


def _act(session: Session, order_key: bytes, at: datetime | None = None) -> OrderAct:
    """The session as an act on its order; without a time, as it was made."""
    when = made_at_ms(session.id) if at is None else to_ms(at)
    act = OrderAct(session.account_id, session.mode, when, order_key, session.id)
    ends = to_ms(session.expires_at) if session.status is Status.OPEN else None
    return act._replace(state=_order_state(session), due_at=ends)


def _order_state(session: Session) -> OrderState | None:
    """The state of an order whose newest act is this session; None: its order was decided."""
    content = session.content
    if session.status is Status.OPEN:
        is_stopped = content is not None and (content.is_undecided or bool(content.stopped_by))
        return OrderState.WAITING_FOR_DECISION if is_stopped else OrderState.WAITING_FOR_BUYER
    if session.status is not Status.COMPLETED:
        return OrderState.CLOSED
    if content is not None and content.cleared is not None:
        return None
    return OrderState.OPEN if session.ack_id is None else OrderState.ACKNOWLEDGED


def seal(key: DataKey, session: Session, nonce: bytes) -> bytes | None:
    """The content of a session, encrypted for its row; None once it is erased."""
    if session.content is None or session.shred_key is None:
        return None
    text = _encode(session.content)
    place = _place(session.account_id, session.id)
    return key.seal(shred_key=session.shred_key, nonce=nonce, plaintext=text, **place)


def _place(account_id: str, session_id: str) -> Place:
    return Place(table="checkout_sessions", column="content", account=account_id, row_id=session_id)


async def find(room: Checkout, reach: Reach, session_id: str) -> Session:
    """A session in reach.

    Raises:
        NotFound: there is none.
    """
    row = await _row(room, session_id)
    if row is None or not reach.covers(row[1], Mode(row[2])):
        raise NotFound("The session was not found.")
    return await _opened(room, row)


async def find_by_token(room: Checkout, digest: bytes) -> Session | None:
    """The session of a client token."""
    row = await room.access.database.read_batched(_rows_by_token, digest)
    return None if row is None else await _opened(room, row)


async def find_by_id(room: Checkout, session_id: str) -> Session | None:
    """A session of any account: the caller decides what to show, by its token."""
    row = await _row(room, session_id)
    return None if row is None else await _opened(room, row)


async def _row(room: Checkout, session_id: str) -> _Row | None:
    is_one = any(is_id(prefix, session_id) for prefix in (CHECKOUT_SESSION, EARLIER_SESSION))
    return await room.access.database.read_batched(_rows_by_id, session_id) if is_one else None


def _rows_by_id(connection: Connection, ids: Sequence[str]) -> list[_Row | None]:
    found = {row[0]: row for row in _select(connection, set(ids))}
    return [found.get(id_) for id_ in ids]


def _rows_by_token(connection: Connection, digests: Sequence[bytes]) -> list[_Row | None]:
    found = {row[4]: row for row in _select_by_token(connection, set(digests))}
    return [found.get(digest) for digest in digests]


async def find_many(room: Checkout, who: Principal, query: CheckoutSessionsQuery) -> list[Session]:
    """Sessions in reach, newest first."""
    wanted = select(_c.id).where(who.reach.rows(checkout_sessions))
    # In order of identifiers, those of earlier versions would precede every newer one.
    wanted = wanted.where(_c.id.startswith(CHECKOUT_SESSION))
    index = partial(room.access.secret.blind_index, who.account_id)
    if query.session_id is not None:
        wanted = wanted.where(_c.session_index == index(CHECKOUT_FIELD, query.session_id))
    if query.order_reference is not None:
        wanted = wanted.where(_c.reference_index == index(REFERENCE_FIELD, query.order_reference))
    if query.after is not None:
        wanted = wanted.where(_c.id < query.after)
    wanted = wanted.order_by(_c.id.desc()).limit(query.limit + 1)
    rows = await room.access.database.scan(_rows, wanted)
    return [await _listed(room, row) for row in rows]


def _rows(connection: Connection, wanted: Select[tuple[str]]) -> list[_Row]:
    ids = [*connection.execute(wanted).scalars()]
    return [row for row in _rows_by_id(connection, ids) if row is not None]


async def _listed(room: Checkout, row: _Row) -> Session:
    """A session of a list; a damaged one does not break the list."""
    try:
        return await _opened(room, row)
    except (DamagedValue, msgspec.MsgspecError) as error:
        _log.error("checkout_session_damaged", session_id=row[0], reason=type(error).__name__)
        return replace(_session(row, None), is_unreadable=True)


async def change(
    room: Checkout,
    session: Session,
    transition: Callable[[Session, datetime], Session],
    also: Also | None = None,
    item: object = None,
    *,
    remember: Remember[Session] = None,
) -> Session:
    """Change a session from the state that it is in; durable when this returns.

    `transition` refuses by raising, and changes nothing by returning its argument. `also`,
    with the item of this change, and the event of an end are written in the same transaction. If
    it returns the session as it was before, nothing of it is written.

    Raises:
        Overloaded: too many others change it at the same time, here or at other servers.
    """
    given, browser = session, session.browser
    session = seen_by(session, browser)
    changed = transition(session, await clock_of(room, session))
    if changed is session:
        return given
    async with room.changes.turn(session.id) as waited:
        for number in range(_ROUNDS_MAX):
            if waited or number:
                session = seen_by(await find(room, session.reach, session.id), browser)
                changed = transition(session, await clock_of(room, session))
            if changed is session:
                return session
            time_ns = room.access.clock.time_ns()
            key = await room.vault.data_key(session.account_id, time_ns)
            change_ = _Change(room, session, changed, key, from_ns(time_ns), also, item, remember)
            written = await room.access.database.write_batched(_write_changes, change_)
            if written is not None:
                return written
    raise Overloaded


async def count_consent(room: Checkout, session: Session) -> Session:
    """Count a visitor's decision about being remembered; durable when this returns.

    The revision does not change: anyone with the link can watch it, and would learn that a buyer is
    known.

    Raises:
        CheckoutSessionClosed: the session went on, or this was counted, in another tab.
    """
    if not await room.access.database.write(_count_consent, session):
        raise CheckoutSessionClosed("It went on in another tab.")
    return replace(session, consents=session.consents + 1)


def _count_consent(connection: Connection, before: Session) -> bool:
    same = update(checkout_sessions).where(
        _c.id == before.id, _c.revision == before.revision, _c.consents == before.consents
    )
    return connection.execute(same.values(consents=before.consents + 1)).rowcount == 1


class _Change(NamedTuple):
    """A change that is decided, on its way into a transaction."""

    room: Checkout
    before: Session
    after: Session
    key: DataKey
    at: datetime
    also: Also | None
    item: object
    remember: Remember[Session]


def _write_changes(connection: Connection, changes: Sequence[_Change]) -> list[Session | None]:
    """Write these and return the new sessions; None for one that has changed since it was read."""
    outcomes: list[Session | None] = [None] * len(changes)
    several: dict[Also | None, list[int]] = {}
    # In one order at all servers, so that no deadlock is possible.
    for place, one in sorted(enumerate(changes), key=lambda each: each[1].before.id):
        # The other writes belong to this state alone, which must not change meanwhile.
        if one.also is None or _hold(connection, one.before.id, one.before.revision).rowcount == 1:
            several.setdefault(one.also, []).append(place)
    for also, places in several.items():
        own = [(changes[place].item, changes[place].after) for place in places]
        afters = also(connection, own) if also is not None else [after for _, after in own]
        for place, after in zip(places, afters, strict=True):
            same = also is not None and after == changes[place].before
            outcomes[place] = after if same else _write_change(connection, changes[place], after)
    return outcomes


def _write_change(connection: Connection, change_: _Change, after: Session) -> Session | None:
    room, before, _, _, at, _, _, remember = change_
    after = replace(after, revision=before.revision + 1)
    content = seal(change_.key, after, room.access.entropy(NONCE_BYTES))
    ends = to_ms(after.expires_at)
    changed = _update(
        connection,
        *(after.revision, after.status.value, ends, ends if after.status is Status.OPEN else None),
        None if after.ended_at is None else to_ms(after.ended_at),
        *(after.ack_id, after.clearance_id, after.check_revision, content),
        *(cbid_index(room, after), before.id, before.revision),
    )
    if changed.rowcount != 1:
        return None
    state = _order_state(after)
    is_moved = after.expires_at != before.expires_at
    if state is not None and (is_moved or state is not _order_state(before)):
        keys = {bytes(key) for _, key in indexed_keys(connection, [after.id])}
        write_acts(connection, (_act(after, key, at) for key in keys))
    if after.status is not before.status:  # it has ended
        event = EventType(f"checkout_session.{after.status}")
        write_events(connection, [NewEvent(after.account_id, after.mode, event, after.id, at)])
    stopped = _stopped(after)
    if stopped and stopped != _stopped(before):
        type_ = EventType.CHECKOUT_SESSION_BLOCKED
        blocked = NewEvent(after.account_id, after.mode, type_, after.id, at, reasons=stopped)
        write_events(connection, [blocked])
    keep_answer(connection, remember, after)
    return after


def _stopped(session: Session) -> tuple[Reason, ...]:
    """Why the buyer of an open session cannot go on."""
    content = session.content
    return content.stopped_by if content and session.status is Status.OPEN else ()


def erase_contents(connection: Connection, ids: Sequence[str]) -> None:
    """Erase the personal data of these sessions; their rows remain."""
    connection.execute(delete(shred_keys).where(shred_keys.c.record_id.in_(ids)))
    for id_ in ids:
        bare = blanks(checkout_sessions, "session") | {"revision": _c.revision + 1}
        connection.execute(update(checkout_sessions).where(_c.id == id_).values(bare))
    end_waiting(connection, ids)
    _forget_mails(connection, ids)  # last: none is accepted any more


def delete_ended(connection: Connection, now: datetime, limit: int) -> int:
    """Delete at most `limit` sessions that ended long ago; returns how many."""
    old = select(_c.id).where(_c.ended_at < now - KEPT).limit(limit)
    ids = [*connection.execute(old).scalars()]
    delete_acts(connection, ids)
    connection.execute(delete(shred_keys).where(shred_keys.c.record_id.in_(ids)))
    connection.execute(delete(checkout_sessions).where(_c.id.in_(ids)))
    _forget_mails(connection, ids)
    return len(ids)


async def clock_of(room: Checkout, session: Session) -> datetime:
    """Now, by the test clock where the session is of a sandbox."""
    return await room.access.test_clocks.now(session.account_id, session.mode)


def cbid_index(room: Checkout, session: Session) -> bytes | None:
    """The blind index by which an erasure finds a buyer's sessions."""
    cbid, index = session.subject, room.access.secret.blind_index
    return None if cbid is None else index(session.account_id, CBID_FIELD, cbid)


async def _opened(room: Checkout, row: _Row) -> Session:
    id_, account_id, *_, shred_key, content = row
    if content is None or shred_key is None:
        return _session(row, None)
    text = await room.vault.open(content, shred_key=shred_key, **_place(account_id, id_))
    return _session(row, _decode(text))


def _session(row: _Row, content: Content | None) -> Session:
    """A session from its columns, as the driver returns them, and from its sealed content."""
    *columns, shred_key, _ = row
    own: dict[str, Any] = dict(zip(_READ, columns, strict=True))
    own |= {"mode": MODES[own["mode"]], "status": _STATUSES[own["status"]]}
    for name in ("created_at", "expires_at", "ended_at"):
        own[name] = None if own[name] is None else from_ms(own[name])
    return Session(**own, shred_key=shred_key, content=content)


def _forget_mails(connection: Connection, ids: Sequence[str]) -> None:
    """Delete all mails of these sessions, waiting ones too."""
    connection.execute(delete(copy_mails).where(copy_mails.c.checkout_session_id.in_(ids)))
