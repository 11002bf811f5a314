"""Clear an order: one decision over acknowledgment, buyer and ZIP, written down as evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from countersign.access.idempotency_entry import IdempotencyEntry
from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clock import TestClock
from countersign.access.test_clocks import TestClocks
from countersign.buyers.evaluate_session import proved_zip_index
from countersign.buyers.model import BuyerStatus, best_proof, standing
from countersign.buyers.rules import AbsentCountry, VerificationRules
from countersign.clearances.keys import ClearanceKeys, Signers
from countersign.clearances.model import (
    Case,
    Circumstances,
    Clearance,
    Decision,
    Judgement,
    Order,
    Question,
    SettledOrder,
    WrittenClearance,
    binds,
    expiry,
    failing,
    live_would_refuse,
)
from countersign.clearances.record import DECISION_ENTROPY, DecisionDraft, decision_records
from countersign.clearances.token import ClearanceToken
from countersign.errors import InvalidRequest
from countersign.evidence.canonical import canonical_json
from countersign.evidence.record import CBID_FIELD, SESSION_FIELD
from countersign.identity.postal_code import zip5
from countersign.ids import CLEARANCE, timed_id
from countersign.instant import from_ns
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.notices.model import NoticeStatus, NoticeVersion, status_of
from countersign.notices.obligations import (
    COMPARED_ZIP,
    KNOWN_CLASSES,
    NOTHING,
    Following,
    following,
)
from countersign.notices.registry import AllVersions, Registry
from countersign.ports import ClearanceStore, Clock, Entropy
from countersign.vault.vault import DataKey, Vault

_ID_ENTROPY: Final = 8


class _Act(msgspec.Struct, frozen=True, kw_only=True):
    """A question on its way into the store, with what its decision is written down with."""

    key: DataKey
    signers: Signers
    entropy: bytes
    remember: Callable[[Clearance], IdempotencyEntry] | None


class ClearOrder:
    """The act of clearing."""

    def __init__(
        self,
        *,
        store: ClearanceStore,
        registry: Registry,
        keys: ClearanceKeys,
        token: ClearanceToken,
        floor: VerificationRules,
        secret: DeploymentSecret,
        vault: Vault,
        clocks: TestClocks,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._clocks = clocks
        self._store = store
        self._registry = registry
        self._keys = keys
        self._token = token
        self._floor = floor
        self._secret = secret
        self._vault = vault
        self._clock = clock
        self._entropy = entropy
        self._following: dict[str, Following] = {}
        self._classes: tuple[AllVersions, frozenset[str]] = ({}, KNOWN_CLASSES)

    async def __call__(
        self,
        principal: Principal,
        order: Order,
        remember: Callable[[Clearance], IdempotencyEntry] | None = None,
        *,
        input_required: bool = False,
    ) -> Clearance:
        """Decide whether an order may ship; durable when this returns.

        The same order gets the same clearance while that is valid and all conditions still hold.
        `input_required`: judge it as if the buyer were in `requires_input`.

        Raises:
            InvalidRequest: the product class is neither a usual one nor named by a notice.
            RateLimited: the account has tried too many ZIP codes for this buyer today.
        """
        await self._check_class(order.product_class)
        clock = await self._clocks.of(principal.account_id, principal.mode)
        time_ns = self._clock.time_ns()
        entropy = self._entropy(_ID_ENTROPY + DECISION_ENTROPY)
        question = self._question(principal, order, clock, time_ns, entropy[:_ID_ENTROPY])
        act = _Act(
            key=await self._vault.data_key(principal.account_id, time_ns),
            signers=await self._keys.signers(principal.mode),
            entropy=entropy[_ID_ENTROPY:],
            remember=remember,
        )
        notices = await self._registry.notices()
        judge = partial(
            self._judge, act.signers, notices, fresh=False, input_required=input_required
        )
        decided = await self._store.decide(question, act, judge, self._settle)
        if decided is None:
            # What speaks against the notice counts only after a fresh look.
            notices = await self._registry.notices(fresh=True)
            judge = partial(
                self._judge, act.signers, notices, fresh=True, input_required=input_required
            )
            decided = await self._store.decide(question, act, judge, self._settle)
        assert decided is not None  # noqa: S101 - a fresh look leaves nothing open
        return decided

    async def _check_class(self, product_class: str | None) -> None:
        """Refuse a class that nobody has named: a typing error, not goods that need a dealer."""
        if product_class is None:
            return
        if product_class in self._known_classes(await self._registry.notices()):
            return
        known = self._known_classes(await self._registry.notices(fresh=True))
        if product_class not in known:
            msg = f"Expected one of {', '.join(sorted(known))} - at `$.product_class`."
            raise InvalidRequest(msg)

    def _known_classes(self, notices: AllVersions) -> frozenset[str]:
        if self._classes[0] is not notices:
            versions = [version for own in notices.values() for version in own]
            named = KNOWN_CLASSES.union(*(self._follows(v).classes for v in versions))
            self._classes = notices, named
        return self._classes[1]

    def _question(
        self, principal: Principal, order: Order, clock: TestClock, time_ns: int, entropy: bytes
    ) -> Question:
        index = partial(self._secret.blind_index, principal.account_id)
        zip_ = zip5(order.shipping_zip)
        whole = canonical_json(
            [
                order.ack_id,
                order.session_id,
                zip_,
                order.product_class,
                order.shipping_address,
            ]
        )
        return Question(
            clearance_id=timed_id(CLEARANCE, time_ns, entropy),
            account_id=principal.account_id,
            mode=principal.mode,
            order=order,
            session_index=index(SESSION_FIELD, order.session_id),
            cbid_index=index(CBID_FIELD, order.cbid),
            order_index=index("order", whole.decode()),
            zip_index=index("zip", zip_),
            index=index,
            at=from_ns(time_ns),
            judged_at=clock.at(from_ns(time_ns)),
        )

    def _judge(
        self,
        signers: Signers,
        notices: AllVersions,
        question: Question,
        known: Circumstances,
        *,
        fresh: bool,
        input_required: bool,
    ) -> Judgement | None:
        case = self._case(notices, question, known)
        if input_required and case.standing is not None:
            standing_ = replace(case.standing, status=BuyerStatus.REQUIRES_INPUT)
            case = replace(case, standing=standing_)
        if not fresh and case.acknowledgment is not None and not case.notice_in_force:
            return None
        reasons = failing(case)
        earlier = known.earlier
        if reasons or earlier is None or case.now >= earlier.expires_at:
            earlier = None
        obligations = () if reasons else (*case.following.obligations, COMPARED_ZIP)
        return Judgement(
            decision=Decision(
                reasons=reasons,
                obligations=obligations,
                at=question.at,
                expires_at=None if reasons else expiry(case),
            ),
            earlier=earlier,
            kid=signers.at(question.at).kid,
            binds=binds(case),
            zip_compared=case.zip_proved is not None,
            live_would_refuse=live_would_refuse(case),
        )

    def _case(self, notices: AllVersions, question: Question, known: Circumstances) -> Case:
        rules = known.buyer_rules.at_least(self._floor) if known.buyer_rules else self._floor
        in_force, follows = self._notice(notices, question, known)
        told = None
        if known.buyer is not None:
            told = standing(known.buyer, question.account_id, rules, question.judged_at)
        return Case(
            order=question.order,
            order_index=question.order_index,
            session_index=question.session_index,
            cbid_indexes=self._cbid_indexes(question, known),
            acknowledgment=known.acknowledgment,
            use=known.use,
            notice_in_force=in_force,
            following=follows,
            standing=told,
            zip_proved=self._zip_proved(question, known, rules),
            rules=known.rules,
            now=question.judged_at,
            live=question.mode is Mode.LIVE,
        )

    def _notice(
        self, notices: AllVersions, question: Question, known: Circumstances
    ) -> tuple[bool, Following]:
        """Whether the version that was acknowledged is in force, and what follows from it."""
        if known.acknowledgment is None:
            return False, NOTHING
        versions = notices.get(known.acknowledgment.notice_id, ())
        named = known.acknowledgment.notice_version
        version = next((v for v in versions if v.content.version == named), None)
        if version is None:
            return False, NOTHING
        status = status_of(version, versions, question.mode, question.judged_at)
        return status is NoticeStatus.IN_FORCE, self._follows(version)

    def _follows(self, version: NoticeVersion) -> Following:
        known = self._following.get(version.digest)
        if known is None:
            known = self._following[version.digest] = following(version.content.obligations)
        return known

    def _cbid_indexes(self, question: Question, known: Circumstances) -> frozenset[bytes]:
        """A buyer who turned out to be somebody known already goes by several identifiers."""
        indexes = {question.cbid_index}
        if known.buyer is not None:
            if known.buyer.cbid != question.order.cbid:
                indexes.add(question.index(CBID_FIELD, known.buyer.cbid))
            if known.use is not None and known.bound_to == known.buyer.cbid:
                indexes.add(known.use.cbid_index)
        return frozenset(indexes)

    def _zip_proved(
        self, question: Question, known: Circumstances, rules: VerificationRules
    ) -> bool | None:
        buyer = known.buyer
        if buyer is None or (buyer.simulated and buyer.account_id != question.account_id):
            return None
        if buyer.simulated and not buyer.proofs:
            verified = buyer.verified_at is not None
            return question.zip_index in known.sandbox_zips if verified else None
        proof = best_proof(buyer, rules)
        if proof is None:
            return None
        zip_ = question.order.shipping_zip
        countries = [False]
        if rules.absent_country is AbsentCountry.US:
            countries.append(True)
        return any(
            proved_zip_index(self._secret, buyer.cbid, zip_, source, country_assumed=assumed)
            in proof.zips
            for source in rules.zip_sources
            for assumed in countries
        )

    def _settle(self, orders: Sequence[SettledOrder[_Act]]) -> list[WrittenClearance]:
        """What to write and to tell of orders that are decided together."""
        records = iter(
            decision_records(
                [
                    DecisionDraft(act.key, question, judgement.decision, act.entropy)
                    for act, question, judgement in orders
                    if judgement.earlier is None
                ]
            )
        )
        return [
            self._settle_one(order, None if order.judgement.earlier else next(records))
            for order in orders
        ]

    def _settle_one(self, order: SettledOrder[_Act], record: NewRecord | None) -> WrittenClearance:
        act, question, judgement = order
        decision, earlier = judgement.decision, judgement.earlier
        id_, at, expires_at = question.clearance_id, decision.at, decision.expires_at
        judged_at = question.judged_at
        kid = judgement.kid
        if earlier is not None:
            id_, at, expires_at = earlier.clearance_id, earlier.at, earlier.expires_at
            kid, judged_at = earlier.kid, earlier.judged_at
        token = None
        if expires_at is not None:
            claims = self._token.claims(
                account_id=question.account_id,
                mode=question.mode,
                clearance_id=id_,
                order=question.order,
                obligations=decision.obligations,
                at=at,
                judged_at=judged_at,
                expires_at=expires_at,
            )
            token = act.signers.of(kid, decision.at).sign(claims)
        clearance = Clearance(
            clearance_id=id_,
            cleared=decision.cleared,
            reasons=decision.reasons,
            obligations=decision.obligations,
            expires_at=expires_at,
            token=token,
            live_would_refuse=judgement.live_would_refuse,
        )
        kept = act.remember(clearance) if act.remember else None
        return WrittenClearance(clearance, record, kept)
