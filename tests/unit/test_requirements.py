"""An order's needs: the rules of notices, and that unknown never means "nothing"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins
from msgspec.structs import replace

from countersign.base.errors import InvalidNoticeFile
from countersign.base.values import Mode
from countersign.core.notices.model import (
    RULE,
    LifecycleEvent,
    NoticeEdition,
    NoticeEvent,
    notice_digest,
    published_bytes,
    rule_details,
)
from countersign.core.notices.notice_file import (
    content_of,
    parse_notice_file,
    shipped_notice_files,
)
from countersign.core.notices.registry import KnownNotices
from countersign.core.notices.requirements import (
    Requirements,
    RuleVersion,
    requirements_of,
)
from countersign.core.notices.rule import STATES, AppliesTo, Cart, Requirement, judge
from tests.support import depth
from tests.support.every import every
from tests.unit.test_notice_file import MINIMAL, toml

NOW = datetime(2026, 11, 22, tzinfo=UTC)
DAY = timedelta(days=1)
RULE_1 = {
    "version": "1",
    "source": "Law § 1",
    "product_classes": ["accessory", "barrel"],
    "delivered_to": ["CA"],
    "residents_of": ["CA"],
    "identity_checks": ["age", "address"],
    "minimum_age": 18,
}
(SHIPPED,) = (parse_notice_file(data) for data in shipped_notice_files().values())
RANK = {Requirement.NOT_REQUIRED: 0, Requirement.UNKNOWN: 1, Requirement.REQUIRED: 2}


def edition(
    notice_id: str = "law",
    *rules: AppliesTo,
    reviewed: bool = False,
    rule_reviewed: str | None = None,
    days: int = -1,
    obligations: Any = None,  # noqa: ANN401 - any JSON
    withdrawn: bool = False,
) -> NoticeEdition:
    """A published version with these rules; it takes effect in so many days."""
    content = parse_notice_file(toml(MINIMAL | {"id": notice_id}))
    content = replace(content, obligations=obligations)
    happened: list[tuple[LifecycleEvent, dict[str, str]]] = [(LifecycleEvent.PUBLISHED, {})]
    happened += [(LifecycleEvent.RULE_PUBLISHED, rule_details(rule)) for rule in rules]
    if reviewed:
        named = {} if rule_reviewed is None else {RULE: rule_reviewed}
        happened.append((LifecycleEvent.REVIEWED, named))
    if withdrawn:
        happened.append((LifecycleEvent.WITHDRAWN, {}))
    body = published_bytes(content)
    return NoticeEdition(
        content=content,
        digest=notice_digest(body),
        effective_at=NOW + days * DAY,
        events=tuple(
            NoticeEvent(
                id=f"nev_{number}",
                notice_id=notice_id,
                version=content.version,
                type=type_,
                at=NOW - 2 * DAY,
                details=details,
            )
            for number, (type_, details) in enumerate(happened)
        ),
    )


def rule(**changed: object) -> AppliesTo:
    return convert(RULE_1 | changed, AppliesTo)


def cart(
    *classes: str, state: str = "CA", residence: str | None = None, zip_: str | None = None
) -> Cart:
    ship_to = {"state": state, "zip": zip_}
    given_ = {"product_classes": classes, "ship_to": ship_to, "residence_state": residence}
    return convert(given_, Cart)


def ask(order: Cart, *editions: NoticeEdition, mode: Mode = Mode.LIVE) -> Requirements:
    known = KnownNotices(0, {one.content.id: (one,) for one in editions})
    return requirements_of(known, order, mode, NOW)


def law(*, text: bool = True, rule_reviewed: str | None = "1", **more: Any) -> NoticeEdition:  # noqa: ANN401 - arguments of `edition`
    """The notice with its text and its rule reviewed."""
    return edition("law", rule(), reviewed=text, rule_reviewed=rule_reviewed, **more)


@every(
    ("order", "required", "reasons"),
    [
        (cart("accessory"), "required", ["delivered_to_state"]),
        (cart("accessory", zip_="10001"), "required", ["delivered_to_state"]),
        (cart("accessory", residence="NV"), "required", ["delivered_to_state"]),
        (
            cart("barrel", residence="CA"),
            "required",
            ["delivered_to_state", "resident_of_state"],
        ),
        (cart("accessory", state="NV", residence="CA"), "required", ["resident_of_state"]),
        (cart("accessory", state="NV"), "unknown", ["residence_unknown"]),
        (cart("accessory", state="NV", residence="ZZ"), "unknown", ["residence_unknown"]),
        (cart("accessory", state="ZZ", residence="NV"), "unknown", ["state_unknown"]),
        (cart("accessory", state="AP", residence="NV"), "unknown", ["state_unknown"]),
        # A parcel goes where the ZIP code says.
        (
            cart("accessory", state="NV", residence="NV", zip_="94105"),
            "required",
            ["delivered_to_state"],
        ),
        (
            cart("accessory", state="OR", residence="OR", zip_="94105-1234"),
            "required",
            ["delivered_to_state"],
        ),
        (cart("accessory", state="ZZ", zip_="94105"), "required", ["delivered_to_state"]),
        (
            cart("accessory", state="NV", residence="NV", zip_="10001"),
            "unknown",
            ["zip_contradicts_state"],
        ),
        # Not even for places that the rule does not name: the address is wrong.
        (
            cart("manufacturing_machine", state="NV", residence="NV", zip_="94105"),
            "unknown",
            ["zip_contradicts_state"],
        ),
        # This one delivers on both sides of the state line.
        (
            cart("accessory", state="NV", residence="NV", zip_="89439"),
            "unknown",
            ["zip_in_several_states"],
        ),
        (
            cart("accessory", state="OR", residence="OR", zip_="89439"),
            "unknown",
            ["zip_in_several_states", "zip_contradicts_state"],
        ),
        (
            cart("accessory", state="AP", residence="NV", zip_="96201"),
            "unknown",
            ["state_unknown"],
        ),
        (
            cart("accessory", state="HI", residence="HI", zip_="96201"),
            "unknown",
            ["zip_contradicts_state"],
        ),
        (
            cart("accessory", state="NY", residence="NY", zip_="06390"),
            "not_required",
            ["state_not_named"],
        ),
        # What is unknown cannot change the answer: no place, or no class, is named.
        (
            cart("flower", state="NV", residence="NV"),
            "not_required",
            ["product_class_not_named", "state_not_named"],
        ),
        (cart("flower", residence="CA"), "unknown", ["product_class_unknown"]),
        (cart("flower"), "unknown", ["product_class_unknown", "residence_unknown"]),
        (cart("flower", "accessory"), "required", ["delivered_to_state"]),
        (cart("accessory", state="NV", residence="NV"), "not_required", ["state_not_named"]),
        (cart("manufacturing_machine"), "not_required", ["product_class_not_named"]),
        (
            cart("manufacturing_machine", state="ZZ"),
            "not_required",
            ["product_class_not_named"],
        ),
        (
            cart("manufacturing_machine", residence="CA"),
            "not_required",
            ["product_class_not_named"],
        ),
    ],
)
def test_a_reviewed_rule_decides_by_the_known_facts(
    order: Cart, required: str, reasons: list[str]
) -> None:
    found = ask(order, law())
    (notice,) = found.notices
    assert (notice.required, list(notice.reasons)) == (required, reasons)
    assert found.decision == found.identity.required == required
    assert found.to_collect() == (([], False) if required == "not_required" else (["law"], True))


ADDRESS_METADATA = {
    "AA": "340", "AE": "09", "AK": "99[5-9]", "AL": "3[56]", "AP": "96[2-6]", "AR": "71[6-9]|72",
    "AS": "96799", "AZ": "8[56]", "CA": "9[0-5]|96[01]", "CO": "8[01]", "CT": "06",
    "DC": "20[02-5]|569", "DE": "19[7-9]", "FL": "3[23]|34[1-9]", "FM": "9694[1-4]",
    "GA": "3[01]|39[89]", "GU": "969([1-2]|3[12])", "HI": "96[78]", "IA": "5[0-2]",
    "ID": "83[2-9]", "IL": "6[0-2]", "IN": "4[67]", "KS": "6[67]", "KY": "4[01]|42[0-7]",
    "LA": "70|71[0-5]", "MA": "01|02[0-7]|05501|05544", "MD": "20[6-9]|21", "ME": "039|04",
    "MH": "969[67]", "MI": "4[89]", "MN": "55|56[0-7]", "MO": "6[3-5]", "MP": "9695[0-2]",
    "MS": "38[6-9]|39[0-7]", "MT": "59", "NC": "2[78]", "ND": "58", "NE": "6[89]",
    "NH": "03[0-8]", "NJ": "0[78]", "NM": "87|88[0-4]", "NV": "889|89", "NY": "1[0-4]|06390|005",
    "OH": "4[3-5]", "OK": "73[0-24-9]|74", "OR": "97", "PA": "1[5-8]|19[0-6]", "PR": "00[679]",
    "PW": "969(39|40)", "RI": "02[89]", "SC": "29", "SD": "57", "TN": "37|38[0-5]",
    "TX": "7[5-9]|885|733", "UT": "84", "VA": "201|2[23]|24[0-6]", "VI": "008", "VT": "05",
    "WA": "98|99[0-4]", "WI": "5[34]", "WV": "24[7-9]|2[56]", "WY": "82|83[01]|83414",
}  # fmt: skip
"""The first digits of ZIP codes by state, in the address metadata of browsers; with all of 005, 399
and 733, of which it names single ZIP codes."""
NOT_ASSIGNED = "269 529 578 579 589 659 69[4-9] 81[789] 839 848 849 86[6-9] 899".replace(" ", "|")
"""The unassigned parts of these areas."""


def plainly(state: str, zip_code: str) -> str:
    """The decision of a rule for California about a delivery, from the plain list."""
    if state == "CA" or re.match(ADDRESS_METADATA["CA"], zip_code):
        return "required"
    is_there = re.match(ADDRESS_METADATA.get(state, "none"), zip_code)
    is_known = is_there and not re.match(NOT_ASSIGNED, zip_code) and state not in {"AA", "AE", "AP"}
    return "not_required" if is_known else "unknown"


def test_a_zip_code_decides_where_a_parcel_goes() -> None:
    """All 1000 beginnings in each state: no contradiction is ever `not_required`."""
    one, known = rule(), frozenset({"accessory"})
    for first, state in product(range(1000), [*ADDRESS_METADATA, "ZZ"]):
        zip_code = f"{first:03}00"
        order = cart("accessory", state=state, residence="NV", zip_=zip_code)
        answer, reasons = judge(one, order, known)
        assert (state, zip_code, answer) == (state, zip_code, plainly(state, zip_code))
        contradicts = not re.match(ADDRESS_METADATA.get(state, "none"), zip_code)
        assert answer != "not_required" or not contradicts
        assert ("zip_contradicts_state" in reasons) <= (answer == "unknown")


@pytest.mark.parametrize(
    ("order", "warned"),
    [
        (cart("accessory", state="OR", residence="OR", zip_="94105"), True),
        (cart("accessory", state="CA", zip_="10001"), True),
        (cart("accessory", state="NV", residence="NV", zip_="10001"), True),
        (cart("accessory", state="NV", residence="NV", zip_="89101"), False),
        (cart("accessory", state="NV", residence="NV", zip_="89439"), False),
        (cart("accessory", state="AP", zip_="96201"), False),
        (cart("accessory", state="OR", residence="OR"), False),
    ],
)
def test_an_address_that_contradicts_itself_is_warned_of(order: Cart, warned: bool) -> None:
    """Whatever the answer is: the buyer has to correct it."""
    warning = {"type": "zip_contradicts_state", "notice_id": None, "product_class": None}
    assert to_builtins(list(ask(order, law()).warnings)) == [warning] * warned


CLASSES = st.sampled_from(["accessory", "barrel", "manufacturing_machine", "armor", "flower"])
PLACES = st.sampled_from(["CA", "NV", "NY", "AP", "ZZ"])
ZIP_OF = {"CA": "94105", "NV": "89101", "NY": "10001"}
ZIPS = st.sampled_from([None, *ZIP_OF.values()])
CARTS = st.tuples(st.lists(CLASSES, min_size=1, max_size=3), PLACES, st.none() | PLACES, ZIPS).map(
    lambda row: cart(*row[0], state=row[1], residence=row[2], zip_=row[3])
)
KNOWN_PLACES = st.lists(st.sampled_from(["CA", "NV", "NY"]), max_size=2)
CHECKS = st.lists(st.sampled_from(["age", "address"]), max_size=2, unique=True)
RULES = st.builds(
    lambda classes, to, of, checks: rule(
        product_classes=classes, delivered_to=to, residents_of=of, identity_checks=checks
    ),
    st.lists(st.sampled_from(["accessory", "barrel", "armor"]), max_size=3),
    KNOWN_PLACES,
    KNOWN_PLACES,
    CHECKS,
)
LAWS = st.tuples(
    st.lists(RULES, max_size=1),
    st.booleans(),
    st.sampled_from([None, "1"]),
    st.sampled_from([-1, 1]),
    st.booleans(),
)
Law: TypeAlias = tuple[list[AppliesTo], bool, str | None, int, bool]


def edition_of(notice_id: str, generated: Law) -> NoticeEdition:
    rules, text, named, days, withdrawn = generated
    return edition(
        notice_id, *rules, reviewed=text, rule_reviewed=named, days=days, withdrawn=withdrawn
    )


REGISTRIES = st.lists(LAWS, max_size=3).map(
    lambda laws: [edition_of(f"law-{number}", one) for number, one in enumerate(laws)]
)
MODES = st.sampled_from(Mode)


def answers(found: Requirements) -> list[Requirement]:
    """Every answer that could say that nothing is needed."""
    return [found.decision, found.identity.required, *(n.required for n in found.notices)]


@given(CARTS, REGISTRIES, MODES)
@settings(max_examples=depth.drawn(300))
def test_a_fact_that_could_change_the_answer_is_never_not_required(
    order: Cart, laws: list[NoticeEdition], mode: Mode
) -> None:
    """Neither a class, a place, nor a rule; for live keys nor anything unreviewed."""
    found = ask(order, *laws, mode=mode)
    if Requirement.NOT_REQUIRED not in answers(found):
        return
    assert laws
    for one, notice in zip(laws, found.notices, strict=True):
        if notice.required is not Requirement.NOT_REQUIRED:
            continue
        (applied,) = one.rules
        assert notice.rule is not None
        assert mode is Mode.TEST or (one.review is not None and notice.reviewed)
        may_be_named = {"flower", *applied.product_classes} & {*order.product_classes}
        if may_be_named and applied.delivered_to:
            assert order.ship_to.state in STATES - {*applied.delivered_to}
        if may_be_named and applied.residents_of:
            assert order.residence_state in STATES - {*applied.residents_of}
        assert order.ship_to.zip in {None, ZIP_OF.get(order.ship_to.state)}
    if found.decision is Requirement.NOT_REQUIRED:
        assert {n.required for n in found.notices} == {Requirement.NOT_REQUIRED}
        assert found.identity.required is Requirement.NOT_REQUIRED
        assert (found.obligations, found.warnings) == ((), ())


@given(CARTS, CLASSES, REGISTRIES, MODES)
@settings(max_examples=depth.drawn(300))
def test_another_class_never_removes_a_requirement(
    order: Cart, class_: str, laws: list[NoticeEdition], mode: Mode
) -> None:
    """It never turns `required` into something less, or `unknown` into `not_required`."""
    more = replace(order, product_classes=(*order.product_classes, class_))
    before, after = ask(order, *laws, mode=mode), ask(more, *laws, mode=mode)
    pairs = zip(answers(before), answers(after), strict=True)
    assert all(RANK[now] >= RANK[was] for was, now in pairs)
    assert set(before.warnings) <= set(after.warnings)
    assert before.identity.checks == tuple(
        check for check in after.identity.checks if check in before.identity.checks
    )


@given(CARTS, REGISTRIES, LAWS, MODES)
@settings(max_examples=depth.drawn(200))
def test_another_law_never_removes_a_requirement(
    order: Cart,
    laws: list[NoticeEdition],
    new: Law,
    mode: Mode,
) -> None:
    """A new file changes no answer about the others, except that it makes a class known."""
    before = ask(order, *laws, mode=mode)
    after = ask(order, *laws, edition_of("law-9", new), mode=mode)
    for was, now in zip(before.notices, after.notices, strict=False):
        if "product_class_unknown" not in was.reasons:
            assert now == was
    if before.decision is Requirement.REQUIRED:
        assert after.decision is Requirement.REQUIRED


@given(CARTS, REGISTRIES, MODES)
def test_assertions_change_nothing(order: Cart, laws: list[NoticeEdition], mode: Mode) -> None:
    """No rule names an exempt buyer."""
    asserted = convert(to_builtins(order) | {"exemption": {"reason": "licensed dealer"}}, Cart)
    found = ask(asserted, *laws, mode=mode)
    assert found.exemption == asserted.exemption
    assert replace(found, exemption=None) == ask(order, *laws, mode=mode)


NOTHING_NEEDED = cart("accessory", state="NV", residence="NV")


@pytest.mark.parametrize(("text", "named"), list(product([True, False], [True, False])))
def test_live_keys_use_reviewed_texts_and_rules(text: bool, named: bool) -> None:
    """Text and rule: one of them alone is not enough. Drafts are marked."""
    one = law(text=text, rule_reviewed="1" if named else None)
    live, test = ask(NOTHING_NEEDED, one), ask(NOTHING_NEEDED, one, mode=Mode.TEST)
    assert live.decision == ("not_required" if text and named else "unknown")
    assert test.decision == "not_required"
    assert {n.reviewed for n in (*live.notices, *test.notices)} == {text and named}
    if not (text and named):
        assert "not_reviewed" in live.notices[0].reasons
    # A requirement applies whether or not someone has reviewed it.
    assert ask(cart("accessory"), one).decision == "required"


def test_live_keys_keep_the_reviewed_rule_while_another_one_waits() -> None:
    one = law()
    both = edition(
        "law",
        rule(),
        rule(version="2", delivered_to=["CA", "NV"]),
        reviewed=True,
        rule_reviewed="1",
    )
    assert ask(NOTHING_NEEDED, both) == ask(NOTHING_NEEDED, one)
    rehearsed = ask(NOTHING_NEEDED, both, mode=Mode.TEST)
    assert rehearsed.decision == "required"
    assert rehearsed.notices[0].rule == RuleVersion(id="law", version="2")
    assert not rehearsed.notices[0].reviewed


def test_a_review_of_a_rule_without_its_text_does_not_count() -> None:
    """A text with gaps is never reviewed, whatever events say."""
    one = law()
    gaps = replace(one.content, text_gaps=("(E) is missing",))
    object.__setattr__(one, "content", gaps)
    assert ask(NOTHING_NEEDED, one).decision == "unknown"


def test_without_a_notice_or_a_rule_everything_is_unknown() -> None:
    assert ask(NOTHING_NEEDED).decision == ask(NOTHING_NEEDED).identity.required == "unknown"
    alone = ask(NOTHING_NEEDED, edition("law", reviewed=True), mode=Mode.TEST)
    assert (alone.decision, alone.identity.required) == ("unknown", "unknown")
    assert alone.notices[0].reasons == ("no_rule",)


def test_a_notice_without_a_version_in_force_is_still_required() -> None:
    """The operator withdrew the words, not the law."""
    (notice,) = ask(cart("accessory"), law(withdrawn=True)).notices
    assert (notice.required, notice.version) == ("required", None)
    assert notice.reasons == ("delivered_to_state", "no_version_in_force")


def test_whether_a_law_not_yet_in_effect_applies_is_unknown() -> None:
    """An order may be delivered after that day. If the law never applies, the response says so."""
    later = law(days=1)
    found = ask(cart("accessory"), later)
    assert found.decision == "unknown"
    assert found.notices[0].reasons == ("not_in_effect_yet", "no_version_in_force")
    assert ask(NOTHING_NEEDED, later).decision == "not_required"


def test_a_notice_that_does_not_suffice_for_a_class_says_so() -> None:
    """A barrel needs the acknowledgment, and more than that."""
    found = ask(cart("accessory", "barrel"), law())
    (warning,) = found.warnings
    assert to_builtins(warning) == {
        "type": "not_sufficient",
        "notice_id": "law",
        "product_class": "barrel",
    }
    assert ask(cart("barrel", state="NV"), law()).warnings == found.warnings
    assert ask(cart("barrel", state="NV", residence="NV"), law()).warnings == ()


def test_obligations_match_those_of_a_clearance_without_duplicates() -> None:
    label = {"type": "package_label", "text": "Adults only"}
    compared = {"type": "compared", "what": "zip"}
    one = law(obligations=[label])
    other = edition("other", rule(), reviewed=True, rule_reviewed="1", obligations=[label])
    assert ask(cart("accessory"), one, other).obligations == (label, compared)
    assert ask(NOTHING_NEEDED, one, other).obligations == ()


def test_the_strictest_rule_asks_of_the_buyer() -> None:
    old = edition("old", rule(minimum_age=21, identity_checks=["age"]), reviewed=True)
    none = edition("none", rule(identity_checks=[], minimum_age=None), reviewed=True)
    identity = ask(cart("accessory"), law(), old, none).identity
    assert (identity.required, identity.minimum_age) == ("required", 21)
    assert identity.checks == ("age", "address")
    assert [used.id for used in identity.rules] == ["law", "old"]
    # The absence of a requirement in an unreviewed rule is unknown to live keys.
    assert ask(cart("accessory"), none).identity.required == "unknown"
    assert ask(cart("accessory"), none, mode=Mode.TEST).identity.required == "not_required"


def test_the_shipped_rule_states_its_sources_and_no_more() -> None:
    """The three classes, delivery in California or a Californian, 18 years, and the address."""
    shipped = SHIPPED.applies_to
    assert shipped is not None
    assert set(shipped.product_classes) == {
        "accessory",
        "firearm_accessory",
        "barrel",
        "manufacturing_machine",
        "firearm_manufacturing_machine",
    }
    assert (shipped.delivered_to, shipped.residents_of) == (("CA",), ("CA",))
    assert (shipped.identity_checks, shipped.minimum_age) == (("age", "address"), 18)


def test_a_rule_is_no_part_of_the_published_bytes() -> None:
    with_rule = parse_notice_file(toml(MINIMAL | {"applies_to": RULE_1}))
    without = parse_notice_file(toml(MINIMAL))
    assert with_rule.applies_to == rule()
    assert published_bytes(with_rule) == published_bytes(without)


@pytest.mark.parametrize(
    "changed",
    [
        {"residents_of": ["California"]},
        {"delivered_to": ["ZZ"]},
        {"delivered_to": ["AP"]},
        {"product_classes": ["Not A Class"]},
        {"identity_checks": ["mood"]},
        {"minimum_age": 0},
        {"identity_checks": ["address"]},
        {"version": "no spaces"},
        {"source": " "},
        {"exempt": ["everyone"]},
    ],
)
def test_a_mistake_in_a_rule_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InvalidNoticeFile, match="applies_to: "):
        parse_notice_file(toml(MINIMAL | {"applies_to": RULE_1 | changed}))


@pytest.mark.parametrize("name", sorted(set(RULE_1) - {"minimum_age"}))
def test_a_rule_omits_nothing(name: str) -> None:
    """A forgotten list would look like a rule that names no state."""
    rest = {key: value for key, value in RULE_1.items() if key != name}
    with pytest.raises(InvalidNoticeFile, match="applies_to: "):
        parse_notice_file(toml(MINIMAL | {"applies_to": rest}))


def test_the_codes_of_states_match_the_postal_service() -> None:
    """50 states, DC, five territories, and three states in free association."""
    assert len(STATES) == 59
    assert {"CA", "DC", "PR", "GU", "FM"} <= STATES


DEALER = {
    "reason": "licensed dealer",
    "kind": "licensed_dealer",
    "number": "1-23-456",
    "expires_on": "2026-11-22",
    "evidence_reference": "doc-2931",
}
FACTS = ["number", "expires_on", "evidence_reference"]


def exempting(*waives: str, needs: Sequence[str] = FACTS, **more: Any) -> NoticeEdition:  # noqa: ANN401 - arguments of `law`
    """A reviewed notice with a package label, whose rule exempts licensed dealers."""
    exemption = {"kind": "licensed_dealer", "needs": needs, "waives": waives, "source": "Law § 2"}
    rules: dict[str, Any] = {"reviewed": True, "rule_reviewed": "1", "obligations": LABEL} | more
    return edition("law", rule(exemptions=[exemption]), **rules)


def asserted(order: Cart, **changed: object) -> Cart:
    return convert(to_builtins(order) | {"exemption": DEALER | changed}, Cart)


LABEL = [{"type": "package_label", "text": "Adults only"}]
SHIPPED_TO_CA = cart("accessory", "barrel", zip_="94105")


def test_a_rule_waives_the_notice_and_says_why() -> None:
    """The rule, its version and its source are named; all else stays."""
    found = ask(asserted(SHIPPED_TO_CA), exempting("notice"))
    (notice,) = found.notices
    assert (found.decision, notice.required) == ("not_required", "not_required")
    assert notice.reasons == ("delivered_to_state", "exempt")
    assert (notice.rule, notice.exemption and notice.exemption.source) == (
        RuleVersion(id="law", version="1"),
        "Law § 2",
    )
    plain = ask(SHIPPED_TO_CA, exempting("notice"))
    assert (found.identity, found.obligations) == (plain.identity, plain.obligations)
    assert found.warnings == plain.warnings
    assert found.to_collect() == ([], True)


@every(
    ("changed", "needs", "reasons"),
    [
        ({"number": None}, FACTS, ["delivered_to_state", "exemption_facts_missing"]),
        ({"number": None}, ["expires_on"], ["delivered_to_state", "exempt"]),
        ({"expires_on": None}, FACTS, ["delivered_to_state", "exemption_facts_missing"]),
        ({"expires_on": None}, ["number"], ["delivered_to_state", "exempt"]),
        ({"expires_on": "2026-11-21"}, FACTS, ["delivered_to_state", "exemption_expired"]),
        ({"expires_on": "2026-11-21"}, ["number"], ["delivered_to_state", "exemption_expired"]),
        ({"evidence_reference": None}, FACTS, ["delivered_to_state", "exemption_facts_missing"]),
        ({"kind": None}, FACTS, ["delivered_to_state"]),
        ({"kind": "law_enforcement"}, FACTS, ["delivered_to_state"]),
    ],
)
def test_facts_and_expiry_decide(
    changed: dict[str, object], needs: list[str], reasons: list[str]
) -> None:
    found = ask(asserted(cart("accessory"), **changed), exempting("notice", needs=needs))
    assert list(found.notices[0].reasons) == reasons
    waived = "exempt" in reasons
    assert found.decision == ("not_required" if waived else "required")
    assert (found.notices[0].exemption is not None) is waived


def test_a_live_key_needs_a_reviewed_exemption() -> None:
    draft = exempting("notice", rule_reviewed=None)
    order = asserted(cart("accessory"))
    live, test = ask(order, draft), ask(order, draft, mode=Mode.TEST)
    assert live.decision == "required"
    assert "not_reviewed" in live.notices[0].reasons
    assert test.decision == "not_required"


def test_a_notice_out_of_force_exempts_nobody() -> None:
    found = ask(asserted(cart("accessory")), exempting("notice", withdrawn=True))
    assert found.decision == "required"


WAIVED = st.lists(st.sampled_from(["notice", "age", "address"]), min_size=1, unique=True)


@given(CARTS, REGISTRIES, WAIVED, MODES)
@settings(max_examples=depth.drawn(200))
def test_an_exemption_waives_only_what_its_rule_names(
    order: Cart, laws: list[NoticeEdition], waives: list[str], mode: Mode
) -> None:
    """Other notices, and every other check, duty and warning, stay as they are."""
    laws = [*laws, exempting(*waives)]
    plain, found = ask(order, *laws, mode=mode), ask(asserted(order), *laws, mode=mode)
    for was, now in zip(plain.notices, found.notices, strict=True):
        if was.notice_id != "law" or "notice" not in waives:
            assert now.required == was.required
    kept = {check for check in plain.identity.checks if check not in waives}
    assert kept <= {*found.identity.checks}
    if "age" not in waives:
        assert found.identity.minimum_age == plain.identity.minimum_age
    duties = [one for one in plain.obligations if one["type"] != "compared"]
    assert [one for one in found.obligations if one["type"] != "compared"] == duties
    assert found.warnings == plain.warnings


@every(
    ("changed", "mistake"),
    [
        ({"source": " "}, "the source of exemption 'licensed_dealer' is empty"),
        ({"needs": []}, "needs"),
        ({"waives": ["identity"]}, "waives"),
        ({"kind": "Licensed dealer"}, "kind"),
        ({"document": "x"}, "document"),
    ],
)
def test_a_wrong_exemption_is_refused(changed: dict[str, object], mistake: str) -> None:
    exemption = {"kind": "licensed_dealer", "needs": FACTS, "waives": ["notice"], "source": "§ 2"}
    written = {**RULE_1, "exemptions": [exemption | changed]}
    with pytest.raises(InvalidNoticeFile, match=re.escape(mistake)):
        content_of(MINIMAL | {"applies_to": written})


def test_an_exemption_needs_a_source() -> None:
    """Nothing is waived that no text says."""
    exemption = {"kind": "licensed_dealer", "needs": FACTS, "waives": ["notice"]}
    with pytest.raises(InvalidNoticeFile, match="source"):
        content_of(MINIMAL | {"applies_to": {**RULE_1, "exemptions": [exemption]}})
    two = [exemption | {"source": "§ 2"}] * 2
    with pytest.raises(InvalidNoticeFile, match="duplicate exemption"):
        content_of(MINIMAL | {"applies_to": {**RULE_1, "exemptions": two}})


def test_a_rule_without_exemptions_is_stored_as_before() -> None:
    assert "exemptions" not in rule_details(rule())["applies_to"]
