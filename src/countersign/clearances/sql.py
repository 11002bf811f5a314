"""Clearances in the database: one transaction for many questions, a few statements for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Connection, bindparam, update

from countersign.access.idempotency_sql import keep_answers
from countersign.buyers.model import Buyer
from countersign.buyers.rules import VerificationRules
from countersign.buyers.sql import followed_buyers, verification_rules_of
from countersign.buyers.zip_attempts_sql import Subject, ZipTries
from countersign.clearances.model import (
    Circumstances,
    Clearance,
    ClearanceRules,
    Earlier,
    Judgement,
    Question,
    SettledOrder,
    Use,
    WrittenClearance,
)
from countersign.clearances.order_facts_sql import (
    acknowledgments_of,
    earlier_of,
    rules_of,
    simulated_of,
    uses_of,
)
from countersign.db.bulk import BulkInsert
from countersign.db.database import Database
from countersign.db.tables import (
    acknowledgment_uses,
    clearances,
)
from countersign.errors import CountersignError
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.instant import to_ms
from countersign.log.journal import Journal
from countersign.mode import Mode
from countersign.ports import JudgeOrder, SettleOrders

T = TypeVar("T")

_MODES: Final = {mode.value: mode for mode in Mode}
_BUYER_FIELD: Final = "buyer"
_DEFAULT_RULES: Final = ClearanceRules()


_UPDATE_USE: Final = (
    update(acknowledgment_uses)
    .where(acknowledgment_uses.c.ack_id == bindparam("key"))
    .values(order_index=bindparam("order_index"), clearance_id=bindparam("clearance_id"))
)
_insert_uses: Final = BulkInsert(
    acknowledgment_uses,
    "ack_id",
    "account_id",
    "mode",
    "cbid",
    "cbid_index",
    "order_index",
    "clearance_id",
)
_insert_clearances: Final = BulkInsert(
    clearances, "id", "account_id", "mode", "ack_id", "kid", "expires_at", "at"
)


class _Item(NamedTuple):
    """One question, and what the service does with it inside the transaction."""

    question: Question
    act: Any
    judge: JudgeOrder
    settle: SettleOrders[Any]


class Clearances:
    """See `ports.ClearanceStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def decide(
        self, question: Question, act: T, judge: JudgeOrder, settle: SettleOrders[T]
    ) -> Clearance | None:
        """Judge an order and write the decision: all of it, or nothing.

        Gives None, and writes nothing, where `judge` does.

        Raises:
            RateLimited: the account has tried too many ZIP codes for this buyer today.
        """
        return await self._database.write_batched(self._decide, _Item(question, act, judge, settle))

    def _decide(
        self, connection: Connection, items: Sequence[_Item]
    ) -> Sequence[Clearance | CountersignError | None]:
        known = _Known(connection, [item.question for item in items])
        outcomes: list[Clearance | CountersignError | None] = [None] * len(items)
        settled: list[tuple[int, SettledOrder[Any]]] = []
        for place, item in enumerate(items):
            judgement = item.judge(item.question, known.circumstances(item.question))
            if judgement is None:
                continue
            refusal = known.count_zip(item.question) if judgement.zip_compared else None
            if refusal is not None:
                outcomes[place] = refusal
                continue
            known.settle(item.question, judgement)
            settled.append((place, SettledOrder(item.act, item.question, judgement)))
        written = _settle(items, settled)
        self._journal.write(connection, [new.record for _, new in written if new.record])
        _write_clearances(connection, settled, written)
        known.write(connection)
        keep_answers(connection, [new.kept for _, new in written if new.kept])
        for place, new in written:
            outcomes[place] = new.clearance
        return outcomes


class _Known:
    """What the database knows about the orders of one transaction, and what they change of it."""

    def __init__(self, connection: Connection, questions: Sequence[Question]) -> None:
        ack_ids = sorted({question.order.ack_id for question in questions})
        self._uses = uses_of(connection, ack_ids)
        self._stored = frozenset(self._uses)
        self._changed: dict[str, Use] = {}
        self._acknowledgments = acknowledgments_of(connection, ack_ids)
        self._earlier = earlier_of(connection, self._uses)
        cbids = [question.order.cbid for question in questions]
        cbids += [use.cbid for use in self._uses.values() if use.cbid]
        self._buyers = followed_buyers(connection, cbids)
        self._simulated = simulated_of(connection, self._buyers)
        accounts = {question.account_id for question in questions}
        self._rules = rules_of(connection, accounts)
        self._buyer_rules: Mapping[str, VerificationRules] = {}
        if any(not buyer.simulated for buyer in self._buyers.values()):
            self._buyer_rules = verification_rules_of(connection, accounts)
        self._tries = ZipTries(
            connection,
            {s for q in questions if (s := self._subject(q)) is not None},
        )

    def circumstances(self, question: Question) -> Circumstances:
        """What is known about one order."""
        account_id, ack_id = question.account_id, question.order.ack_id
        acknowledgment = self._acknowledgments.get((account_id, question.mode, ack_id))
        use = self._uses.get(ack_id) if acknowledgment is not None else None
        buyer = self._buyer(question)
        bound = self._buyers.get(use.cbid) if use and use.cbid else None
        return Circumstances(
            acknowledgment=acknowledgment,
            use=use,
            earlier=self._earlier.get(use.clearance_id) if use and use.clearance_id else None,
            buyer=buyer,
            bound_to=bound.cbid if bound else None,
            buyer_rules=self._buyer_rules.get(account_id),
            sandbox_zips=self._simulated[buyer.cbid].zips
            if buyer and buyer.cbid in self._simulated
            else frozenset(),
            rules=self._rules.get(account_id, _DEFAULT_RULES),
        )

    def count_zip(self, question: Question) -> CountersignError | None:
        """The refusal if the ZIP code of this order is one too many for its buyer."""
        subject = self._subject(question)
        if subject is None:
            return None
        return self._tries.count(subject, question.zip_index, question.at)

    def settle(self, question: Question, judgement: Judgement) -> None:
        """What the decision makes of the acknowledgment: questions that follow see it."""
        decision, ack_id = judgement.decision, question.order.ack_id
        use = self._uses.get(ack_id)
        if use is None and judgement.binds:
            use = Use(
                ack_id=ack_id,
                account_id=question.account_id,
                mode=question.mode,
                cbid=question.order.cbid,
                cbid_index=question.cbid_index,
                order_index=None,
                clearance_id=None,
                closed_at=None,
            )
            self._uses[ack_id] = self._changed[ack_id] = use
        if use is not None and decision.expires_at is not None and judgement.earlier is None:
            self._uses[ack_id] = self._changed[ack_id] = msgspec.structs.replace(
                use, order_index=question.order_index, clearance_id=question.clearance_id
            )
            self._earlier[question.clearance_id] = Earlier(
                clearance_id=question.clearance_id,
                kid=judgement.kid,
                at=decision.at,
                judged_at=question.judged_at,
                expires_at=decision.expires_at,
            )

    def write(self, connection: Connection) -> None:
        """Write what the orders have changed."""
        new = [use for id_, use in sorted(self._changed.items()) if id_ not in self._stored]
        if new:
            _insert_uses(
                connection,
                [
                    (
                        use.ack_id,
                        use.account_id,
                        use.mode.value,
                        use.cbid,
                        use.cbid_index,
                        use.order_index,
                        use.clearance_id,
                    )
                    for use in new
                ],
            )
        changed = [use for id_, use in self._changed.items() if id_ in self._stored]
        if changed:
            connection.execute(
                _UPDATE_USE,
                [
                    {
                        "key": use.ack_id,
                        "order_index": use.order_index,
                        "clearance_id": use.clearance_id,
                    }
                    for use in changed
                ],
            )
        self._tries.write()

    def _buyer(self, question: Question) -> Buyer | None:
        buyer = self._buyers.get(question.order.cbid)
        return buyer if buyer is not None and buyer.mode is question.mode else None

    def _subject(self, question: Question) -> Subject | None:
        buyer = self._buyer(question)
        if buyer is None:
            return None
        # In the sandbox the guesses of a session count, as in its verification: there each ZIP
        # code has a buyer of its own.
        simulated = self._simulated.get(buyer.cbid)
        index = simulated.subject_index if simulated else None
        if index is None or buyer.account_id != question.account_id:
            index = question.index(_BUYER_FIELD, buyer.cbid)
        return Subject(question.account_id, question.mode, index)


def _settle(
    items: Sequence[_Item], settled: Sequence[tuple[int, SettledOrder[Any]]]
) -> list[tuple[int, WrittenClearance]]:
    """What to write and to answer for each order that was judged."""
    written: list[tuple[int, WrittenClearance]] = []
    for settle, group in groupby(settled, lambda pair: items[pair[0]].settle):
        own = list(group)
        answers = settle([order for _, order in own])
        written += [(place, new) for (place, _), new in zip(own, answers, strict=True)]
    return written


def _write_clearances(
    connection: Connection,
    settled: Sequence[tuple[int, SettledOrder[Any]]],
    written: Sequence[tuple[int, WrittenClearance]],
) -> None:
    rows = []
    for (_, order), (_, new) in zip(settled, written, strict=True):
        if new.record is None:
            continue
        question, decision = order.question, order.judgement.decision
        expires_at = decision.expires_at
        rows.append(
            (
                question.clearance_id,
                question.account_id,
                question.mode.value,
                ack_id if is_id(ACKNOWLEDGMENT, ack_id := question.order.ack_id) else None,
                order.judgement.kid if decision.cleared else None,
                None if expires_at is None else to_ms(expires_at),
                to_ms(decision.at),
            )
        )
    if rows:
        _insert_clearances(connection, rows)
