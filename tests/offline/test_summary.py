"""The verdict in a few lines: for a judge, who knows no identifier and no format."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from playwright.sync_api import Page

from countersign_evidence.dossier import SUMS, read_container, sums, write_container, write_dossier
from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import verify_file
from tests.evidence.dossier_vectors import DOSSIERS, EXPECTED, GOOD, LIVE, load_maker
from tests.offline import builder
from tests.offline.test_command import run
from tests.support.browsers import running_browser
from tests.support.every import every

MACHINE: Final = re.compile(r"_|[0-9a-f]{12}|[0-9a-hjkmnp-tv-z]{20}|::|SHA|checkpoint|digest")
"""Machine text, and words that only engineers use."""
VECTORS: Final = [*GOOD, LIVE, *(DOSSIERS / "broken" / name for name in EXPECTED)]
ROOT: Final = Path(__file__).parents[2]
KEY: Final = "Whose key signed this was not checked."


def lines_of(name: str) -> list[str]:
    return [*verify_file((DOSSIERS / name).read_bytes()).summary]


SAID: Final = {
    "hosted-adopted": "each with initials, two of them taken from the first line, each at a "
    "request that named the line, within 20 seconds of being served",
    "refused": "the order, refused (another buyer, no such buyer)",
    "signature-refused": "by the vendor's reports: a carrier and a tracking number, no signature "
    "of an adult obtained",
    "delivered-and-signed-later": "shipped on 21 November 2026, 16:05 UTC, delivered on 22 "
    "November 2026, 16:05 UTC, signature of an adult obtained",
    "report-corrected": "shipped on 21 November 2026, 16:05 UTC, with one report that a later one "
    "corrects",
    "paid-and-shipped": "by the vendor's reports: a carrier and a tracking number, paid on 20 "
    "November 2026, 21:20 UTC, shipped on 21 November 2026, 16:05 UTC, delivered on 22 November",
    "payment-corrected": "by the vendor's reports: a carrier and a tracking number, shipped on 21 "
    "November 2026, 16:05 UTC, with one report that a later one corrects",
    "notice-withdrawn-after": "the notice, withdrawn on 20 November 2026, 22:40 UTC, after the "
    "initials",
    "notice-reinstated": "the notice, stopped by a court on 20 November 2026, 21:20 UTC, before "
    "the initials; the notice, brought back on 20 November 2026, 21:30 UTC, before the initials, "
    "with the operator's note that the text was compared with the law",
    "notice-enjoined": "Odd: the notice was stopped by a court on 20 November 2026, 21:20 UTC, "
    "before the initials were accepted, on 20 November 2026, 21:31 UTC.",
    "notice-not-yet-in-force": "Odd: the initials were accepted on 20 November 2026, 21:31 UTC, "
    "before the notice came into force, on 1 December 2026.",
    "delivered-without-signature": "Odd: by the vendor's reports the order was delivered on 22 "
    "November 2026, 16:05 UTC, without the signature of an adult, which the decision on it "
    "requires, on 20 November 2026, 21:31 UTC.",
    "unknown-words": "whether a person was there, who, and what the vendor's page showed",
}
"""Of each dossier what its verdict has to say."""


@every("name", SAID)
def test_the_verdict_says_what_happened_and_in_which_order(name: str) -> None:
    """Of initials, notice and fulfilment; what breaks a rule with both times."""
    assert SAID[name] in " ".join(lines_of(f"good/{name}.zip"))


@every("path", VECTORS)
def test_the_verdict_is_at_most_six_lines_in_words(path: Path) -> None:
    """Without identifiers, digests and names of fields, whatever the file says."""
    lines = verify_file(path.read_bytes()).summary
    assert 2 <= len(lines) <= 6
    assert [line for line in lines if MACHINE.search(line) or not line.endswith(".")] == []


def test_the_verdict_on_a_good_file_says_what_it_proves() -> None:
    """By the policy of its own log: nothing is left to compare, and there is no empty line."""
    policy = parse_policy((DOSSIERS / "live" / "policy.txt").read_bytes())
    lines = verify_file(LIVE.read_bytes(), policy).summary
    assert "\n".join(lines) == (
        "Nothing wrong was found: the records are unchanged since the expected key signed them.\n"
        "Accepted on 20 November 2026, 21:31 UTC by the operator's clock; it existed at the latest "
        "on 20 November 2026, 21:31 UTC by the clock of a witness.\n"
        "Shown: four lines of the notice, each with initials; a simulated identity check, "
        "verified; the order, cleared; by the vendor's reports: a carrier and a tracking number, "
        "shipped on 21 November 2026, 16:05 UTC, signature of an adult obtained; the operator and "
        "the vendor, as described.\n"
        "Missing: a report of delivery; the operator's note that the text was compared with the "
        "law; part of the notice's text.\n"
        "Not shown: whether the buyer saw the notice and typed the initials, which the vendor "
        "asserts; whether the person who was checked is that buyer; what was shipped, which the "
        "vendor asserts; whether anything was left out."
    )


def test_without_a_policy_the_verdict_says_first_that_the_key_was_not_checked() -> None:
    """With the keys to compare; test evidence is marked as such."""
    first, *_, compare, _ = lines_of("good/order.zip")
    assert first.startswith(f"Nothing wrong was found in this file. {KEY} This is test evidence")
    assert compare.startswith("To compare: the fingerprint of the key, below, with one from")
    assert "test evidence" not in " ".join(lines_of("live/order.zip"))


def test_the_verdict_says_that_a_decision_did_not_name_its_order() -> None:
    """Records of before do not say whether they did, and neither does their verdict."""
    maker = load_maker()
    rest = [record for record in maker.ORDER if record is not maker.CLEARED]
    for named, words in ((True, ""), (False, ", named by its session alone")):
        members = {**maker.CLEARED.members, "order_named": named}
        decided = replace(maker.CLEARED, members=members)
        found = verify_file(write_dossier(maker.dossier(*rest, decided)))
        assert f"; the order, cleared{words}; " in found.summary[2]
        assert found.dossier
        assert not [remark for remark in found.dossier.remarks if "order_named" in remark]


def exempt(**changed: object) -> bytes:
    """A dossier of an order that was cleared without an acknowledgment."""
    maker = load_maker()
    rest = [maker.OPERATOR, maker.VENDOR, maker.CHECK, maker.FULFILLED]
    waived = [maker.waived({"source": "Law § 2"})]
    members = {**maker.CLEARED.members, "ack_id": None, "exempt_from": waived, **changed}
    return write_dossier(maker.dossier(*rest, replace(maker.CLEARED, members=members)))


def test_the_verdict_says_that_an_exemption_is_the_vendors_assertion() -> None:
    """No acknowledgment is missing then. It repeats no text of the file."""
    found = verify_file(exempt())
    words = (
        "without the notice, by the vendor's assertion of an exemption, which nothing here checks"
    )
    assert f"the order, cleared, {words}" in found.summary[2]
    assert "an acknowledgment" not in found.summary[3]
    assert "§ 2" not in "".join(found.summary)


@pytest.mark.parametrize(
    "changed",
    [
        {"ack_id": "ack_01km9x4zq2e6t9m0r5c7v3w8xa"},
        {"cleared": False, "expires_at": None, "obligations": [], "reasons": ["zip_mismatch"]},
    ],
)
def test_a_forged_exemption_fails(changed: dict[str, object]) -> None:
    found = verify_file(exempt(**changed))
    assert found.summary[0].startswith("Do not rely on this file.")


def test_the_verdict_says_that_a_payment_kept_the_acknowledgment() -> None:
    """A report of the payment is none of a shipment, which stays missing."""
    maker = load_maker()
    rest = [one for one in maker.ORDER if one not in (maker.CLEARED, maker.FULFILLED)]
    paid = {"paid_at": "2026-11-20T21:31:00Z"}
    decided = replace(maker.CLEARED, members={**maker.CLEARED.members, **paid})
    report = {**maker.FULFILLED.members, **paid, "shipped_at": None}
    made = maker.dossier(*rest, decided, replace(maker.FULFILLED, members=report))
    found = verify_file(write_dossier(made))
    on = "20 November 2026, 21:31 UTC"
    kept = f"cleared, with an acknowledgment kept by a payment on {on}"
    assert f"{kept}; by the vendor's reports: paid on {on};" in found.summary[2]
    assert "a report of shipment" in found.summary[3]
    assert found.dossier
    assert not [remark for remark in found.dossier.remarks if "paid_at" in remark]


def test_the_verdict_names_the_source_of_the_time() -> None:
    """Only the operator's; or since when others know of it, and whether they were checked."""
    keys = parse_policy(f"log {builder.vkey(builder.ORIGIN)}\nquorum none\n".encode())
    alone = verify_file(builder.material().dossier(), keys).summary[1]
    assert alone.endswith("UTC: the time is the operator's word, without other support.")
    assert "by the clock of a witness, whose key was not checked." in lines_of("good/order.zip")[1]
    stamped = lines_of("good/stamped.zip")
    assert "by the first of three time-stamps, whose signer was not checked." in stamped[1]
    assert "who signed the time-stamps, with the certificates of their authorities" in stamped[4]


def test_equal_missing_parts_are_listed_once() -> None:
    """In the verdict for people, and in the list with identifiers."""
    alone = lines_of("good/clearance-alone.zip")
    assert "neither operator nor vendor had described itself" in alone[3]
    dossier = verify_file((DOSSIERS / "good" / "erased.zip").read_bytes()).dossier
    assert dossier
    fields = [
        line for line in dossier.order["missing"] if line.startswith("personal fields of ack_")
    ]
    assert len(fields) == 1
    assert len(set(dossier.order["missing"])) == len(dossier.order["missing"])


@every("name", EXPECTED)
def test_the_verdict_on_a_broken_file_says_which_check_failed(name: str) -> None:
    """With the advice to compare it with the original; its claims are not repeated."""
    first, compare = lines_of(f"broken/{name}")
    assert first.startswith("Do not rely on this file. It failed a check: ")
    assert compare.startswith("To compare: the ")


def test_a_proof_alone_names_its_subject(stranger: ModuleType) -> None:
    """It shows one record; without keys nothing is claimed."""
    policy = stranger.read_policy(builder.material().policy.encode())
    lines = stranger.summary(stranger.verify_bytes(builder.material().proof(), policy))
    assert lines[2:4] == [
        "Shown: the record of an acknowledgment alone.",
        "Missing: all that belongs to it.",
    ]
    failed = stranger.summary(stranger.verify_bytes(builder.material().proof()))
    assert "it is not rightly signed by an expected key" in failed[0]


def test_script_and_command_begin_with_the_verdict_for_people(script: Path) -> None:
    """Then come the identifiers; the last line is for machines."""
    lines = lines_of("live/order.zip")
    printed = run(script, LIVE).stdout.splitlines()
    assert (printed[: len(lines)], printed[len(lines)]) == (lines, "")
    assert printed[-1].startswith("CONSISTENT, KEY NOT CHECKED  one order, ack_")


def test_a_changed_file_in_it_is_reported(stranger: ModuleType) -> None:
    """Files outside the signature are covered by the sums alone."""
    files = read_container(LIVE.read_bytes())
    kept = files.pop(SUMS)
    changed = write_container({**files, "dossier.pdf": b"%PDF-1.7 other", SUMS: kept})
    assert verify_file(changed).summary[0].endswith("a file in it was changed.")
    hidden = write_container({**(new := {**files, "dossier.pdf": b"%PDF"}), SUMS: sums(new)})
    assert stranger.verify_bytes(hidden).ok


@pytest.mark.long
@pytest.mark.browser
def test_the_page_begins_with_the_same_lines_and_folds_the_rest(page_file: Path) -> None:
    """The notice with its initials follows; identifiers and steps are behind Details."""
    with running_browser() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto(page_file.as_uri())
        page.locator("#file[data-ready]").set_input_files(LIVE)
        page.locator("#verdict.caution").wait_for()
        assert said(page) == lines_of("live/order.zip")
        shown = page.locator("main").inner_text()
        assert "inclusion" not in shown
        assert shown.index(KEY) < shown.index("Initials: JD")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert "inclusion" in page.locator("main").inner_text()
        page.locator("#file").set_input_files(DOSSIERS / "broken" / "notice-other.zip")
        page.locator("#verdict.bad").wait_for()
        assert said(page) == lines_of("broken/notice-other.zip")
        assert "FAILED at step 7" in page.locator("main").inner_text()


def said(page: Page) -> list[str]:
    return page.locator("#verdict p").all_inner_texts()


def test_the_page_shows_the_same_lines_as_the_command() -> None:
    """Of a good file with its policy, and of a broken one."""
    page = (ROOT / "docs" / "what-it-proves.md").read_text(encoding="utf-8")
    shown = re.findall(
        r"\$ countersign verify (spec/\S+)(?: --policy (\S+))?\n(.*?)```", page, re.DOTALL
    )
    assert len(shown) == 2
    for name, policy_name, text in shown:
        policy = parse_policy((ROOT / policy_name).read_bytes()) if policy_name else None
        lines = verify_file((ROOT / name).read_bytes(), policy).summary
        assert text.splitlines() == [*lines]
