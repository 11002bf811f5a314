"""The statements of a certificate, and statements that it must never make."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from typing import Any

import pytest
from pypdf import PdfReader

from countersign.core.dossiers.words import said_of, said_rows
from countersign_evidence.canonical import canonical_json
from countersign_evidence.dossier import Dossier, DossierRecord
from tests.certificate.facts import (
    ACK_ID,
    PERSONAL,
    PROOF,
    checked,
    evidence,
    made_dossier,
    make_certificate,
    plain_certificate,
    with_parties,
)
from tests.certificate.reader import files_of, pages_of, squeezed, words_of
from tests.certificate.reader import lines_of as lines_on_pages
from tests.support.hosted import PROCESS_JSON

NOON = 1_795_262_400
"""2026-11-21 12:00:00 UTC."""
STAMPED = ("timestamps/tsa.tsr", "2026-11-22T04:05:06Z")


def test_a_certificate_gives_the_source_of_everything_shown() -> None:
    """The notice, the initials next to its lines, the act, the seal: all on the pages."""
    facts = made_dossier()
    words = words_of(make_certificate(facts))
    for answer in (
        "California firearm manufacturing notice (AB 1263)",
        "more than three firearms per calendar year in California. JD",
        "J.D.",
        "I have received and read this notice",
        "ab1263, version 2026-01-01",
        "asserted: the vendor named it",
        "2026-11-20 21:31:00.123 UTC = 2026-11-20 13:31:00.123 PST by this service's own clock",
        "acct_01kdtvz9n8f6ywn3x2qk4c7r5a",
        "The vendor asserts what the buyer did",
        "a secret API key",
        "sess_8c1f",
        "cbid_live_01fwhe4ydgfk1shh6w1g60eecf",
        "203.0.113.7 asserted by the vendor",
        "came from 192.0.2.10",
        "Mozilla/5.0 (X11; Linux x86_64) taken from a header",
        "log.example/v1/log/live/1",
        "number 41, counted from 0",
        "Checkpoint 42 entries",
        sha256(canonical_json(facts.records[0].record)).hexdigest(),
        sha256(canonical_json(facts.notice)).hexdigest(),
        facts.root.hex(),
        facts.key_fingerprint,
        "What this proves",
        "What this does not prove",
        "How to verify it",
    ):
        assert answer in words


def test_the_evidence_itself_is_attached_to_the_byte() -> None:
    """A reader with only the PDF has the record, its shown fields, the notice and the proof."""
    facts = made_dossier()
    attached = files_of(make_certificate(facts))
    assert attached == {name.rpartition("/")[2]: body for name, body in evidence(facts).items()}
    assert attached[f"{ACK_ID}.json"] == canonical_json(facts.records[0].record)
    assert attached[f"{ACK_ID}.tlog-proof"] == PROOF
    words = words_of(make_certificate(facts))
    assert f"the SHA-256 of the attached {ACK_ID}.json must be {facts.records[0].digest}" in words


def test_a_certificate_is_an_archival_document_in_a_language_with_a_title() -> None:
    """PDF/A-3b, so that it can be read in many years; PDF/UA-1, so that it can be read aloud."""
    reader = PdfReader(io.BytesIO(plain_certificate()), strict=True)
    assert reader.xmp_metadata is not None
    claims = reader.xmp_metadata.stream.get_data()
    assert b"<pdfaid:part>3<" in claims
    assert b"<pdfaid:conformance>B<" in claims
    assert b"<pdfuaid:part>1<" in claims
    assert "/DisplayDocTitle" in reader.root_object.get("/ViewerPreferences", {})
    assert reader.root_object.get("/Lang") == "en"
    assert reader.metadata is not None
    assert reader.metadata.title == f"Certificate of Acknowledgment {ACK_ID}"


def elements(pdf: bytes) -> list[tuple[str, str | None]]:
    """The tagged structure: each element's kind, and the language where it changes."""
    found: list[tuple[str, str | None]] = []

    def walk(node: Any) -> None:  # noqa: ANN401 - whatever a PDF holds
        node = node.get_object()
        if isinstance(node, list):
            for child in node:
                walk(child)
        elif isinstance(node, dict):
            if "/S" in node:
                found.append((str(node["/S"]), node.get("/Lang")))
            if "/K" in node:
                walk(node["/K"])

    reader = PdfReader(io.BytesIO(pdf), strict=True)
    walk(reader.root_object["/StructTreeRoot"])
    return found


def test_a_screen_reader_can_say_which_initials_belong_to_which_line() -> None:
    """They are a table with a header, in the language of the notice."""
    spanish = made_dossier(notice={"language": "es-US"})
    found = elements(make_certificate(spanish))
    kinds = [kind for kind, _ in found]
    assert kinds.count("/Table") >= 4
    assert kinds.count("/TH") == 3 + 3 + 2 * (kinds.count("/Table") - 2)
    assert "es" in {language for _, language in found}
    assert "es" not in {language for _, language in elements(plain_certificate())}


def test_the_shipped_notice_fits_on_four_pages() -> None:
    """Also in test mode, which says more: a fifth page with two lines looks like a mistake."""
    file = resources.files("countersign.core.notices") / "ab1263-2026-01-01.toml"
    notice = tomllib.loads(file.read_text())
    lines = [(bullet["id"], bullet["text"]) for bullet in notice.pop("bullets")]
    for mode in ("test", "live"):
        facts = made_dossier(
            {"initials_per_line": ["JD"] * len(lines)},
            lines=lines,
            notice={name: notice[name] for name in ("title", "heading", "text_gaps", "editorial")},
            subject={"mode": mode},
        )
        assert len(pages_of(make_certificate(facts))) == 4


def test_every_page_names_the_record_and_its_own_number() -> None:
    """A page that is separated from the others can be put back."""
    lines = [(f"L{number}", "A line of the notice.") for number in range(200)]
    pages = pages_of(make_certificate(made_dossier(lines=lines)))
    assert len(pages) > 5
    for number, page in enumerate(pages, 1):
        assert ACK_ID in page
        assert f"Page {number} of {len(pages)}" in page


def test_test_evidence_says_so_on_every_page() -> None:
    """No one takes a rehearsal for a sale."""
    pdf = make_certificate(made_dossier(subject={"mode": "test"}))
    assert all("TEST EVIDENCE" in page for page in pages_of(pdf))
    assert "proves nothing about a sale" in words_of(pdf)
    assert "TEST EVIDENCE" not in words_of(plain_certificate())


def erasure() -> DossierRecord:
    """The record that the personal fields of the acknowledgment were erased."""
    return checked(
        {
            "v": 1,
            "type": "erasure",
            "id": "rec_01m7xdxbmvex7t29vh2x05yyy9",
            "mode": "live",
            "at": "2026-11-21T12:00:00.000Z",
            "erased": [ACK_ID],
            "reason": "request",
        },
        index=43,
    )


def without(shown: Dossier) -> Dossier:
    """The dossier of the same order once it was erased."""
    return replace(shown, records=(*shown.records, erasure()))


def test_withheld_erased_and_not_given_are_three_different_things() -> None:
    """A missing field names the known reason, and the document has none of its content."""
    withheld = words_of(make_certificate(made_dossier(show=["cbid"])))
    assert withheld.count("withheld or erased") == 7
    assert "cbid_live_01fwhe4ydgfk1shh6w1g60eecf" in withheld
    pdf = make_certificate(without(made_dossier(show=[])))
    erased = words_of(pdf)
    assert erased.count("erased on 2026-11-21 12:00:00 UTC") == 8
    assert "withheld or erased" not in erased
    assert files_of(pdf)[f"{ACK_ID}.disclosures.json"] == b"[]"
    for secret in ("J.D.", "sess_8c1f", "cbid_live", "203.0.113.7", "Mozilla"):
        assert secret not in erased
    nothing = {"ip": None, "source": None, "peer_ip": None, "forwarded": None, "truncated": False}
    agent = {"user_agent": None, "source": None, "truncated": False}
    absent = made_dossier({"session_id": None, "cbid": None, "ip": nothing, "user_agent": agent})
    assert words_of(make_certificate(absent)).count("not given") == 5


def test_an_unnamed_version_is_marked_as_assumed() -> None:
    """The certificate does not claim that the vendor named the version."""
    words = words_of(make_certificate(made_dossier(subject={"notice_version_source": "assumed"})))
    assert "assumed: the vendor named none" in words
    assert "asserted: the vendor" not in words


def test_the_publishers_own_words_and_gaps_in_the_text_are_shown() -> None:
    """A reader sees which words are not the law's, and that some are missing."""
    notice = {"editorial": ["title", "attestation_text"], "text_gaps": ["(E) is missing"]}
    words = words_of(make_certificate(made_dossier(notice=notice)))
    assert "the publisher's own words, not the law's: title, attestation_text" in words
    assert "(E) is missing" in words


def test_without_an_outside_witness_the_certificate_says_that_time_rests_on_the_operator() -> None:
    """The operator's own clock never stands in for a time-stamp."""
    alone = words_of(plain_certificate())
    assert alone.count("none: only the operator's clock shows the time") == 2
    assert "no one else has signed this checkpoint" in alone
    seen = words_of(
        make_certificate(
            made_dossier(cosigned=(("witness.example/w1", NOON),), timestamps=(STAMPED,))
        )
    )
    assert "witness.example/w1, 2026-11-21 12:00:00 UTC" in seen
    assert "only the operator's clock" not in seen


def test_the_parties_are_those_named_in_the_acknowledgment() -> None:
    """The issuer, the seller, and the vendor's description of its capture; or none recorded."""
    words = words_of(make_certificate(with_parties()))
    for expected in (
        "Issued by Example Operator, Inc. runs this service and its log",
        "licence L 1; as described by the operator in the log",
        "Vendor Example Vendor, LLC the account to which the acknowledgment belongs; account acct_",
        "(version 3). The record of the acknowledgment has the digest of this text",
        "We show each line.",
    ):
        assert expected in words, expected
    nothing = words_of(plain_certificate())
    assert nothing.count("not described in the log when this was accepted") == 2
    assert "The vendor had not described its capture process in the log" in nothing


@pytest.mark.parametrize(
    ("capture", "source", "operator", "vendor", "client"),
    [
        ("vendor_api", "body", "Who the parties are.", "as which buyer. The IP address. The", None),
        ("vendor_api", "connection", "parties are. The IP address.", "as which buyer.", None),
        ("hosted", "header", "parties are. The IP address.", None, "The user agent."),
    ],
)
def test_an_address_is_the_word_of_the_party_that_sent_it(
    capture: str, source: str, operator: str, vendor: str | None, client: str | None
) -> None:
    """Vendor assertions and operator observations are never confused."""
    fields: dict[str, Any] = {"ip": {"source": source}}
    if source != "connection":
        fields["user_agent"] = {"source": source}
    said = dict.fromkeys(("The operator", "The vendor", "The client"), "")
    said |= {
        row["label"]: row["value"] for row in said_rows([*said_of({"capture": capture}, fields)])
    }
    assert said["The operator"].endswith(operator)
    for label, words in (("The vendor", vendor), ("The client", client)):
        assert (words or "") in said[label]
        assert bool(words) == bool(said[label])


def test_a_statement_of_several_lines_has_its_line_breaks() -> None:
    """And no code points in their place."""
    lines = lines_on_pages(make_certificate(with_parties("We show each line.\nThe buyer types.")))
    assert "We show each line." in lines
    assert "The buyer types." in lines


def test_the_timeline_is_in_order_and_names_the_clock_of_each_event() -> None:
    """In UTC and in Pacific time, also where a day or a summer begins."""
    at = ("timestamps/tsa.tsr", "2026-07-02T03:00:00Z")
    words = words_of(make_certificate(made_dossier(timestamps=(at,))))
    stamped = "2026-07-02 03:00:00 UTC 2026-07-01 20:00:00 PDT The checkpoint was time-stamped"
    assert f"{stamped} by the clock of timestamps/tsa.tsr, a time-stamp authority" in words
    assert words.index("was time-stamped by") < words.index("The initials were accepted by")


def test_a_certificate_claims_no_more_than_is_checked() -> None:
    """Neither that the buyer was shown the words, nor that the log contains this paper."""
    words = words_of(plain_certificate())
    assert "That the buyer was shown the notice." in words
    assert "as served" not in words
    assert "covers neither this document" in words
    assert "Check page" in words
    hosted = words_of(make_certificate(made_dossier(subject={"capture": "hosted"})))
    assert "That the buyer was shown the notice." not in hosted


HOSTED = {"capture": "hosted", "credential": "checkout_session"}
TWO_LINES = PROCESS_JSON | {"lines": PROCESS_JSON["lines"][:2]}


def hosted_words(subject: Mapping[str, str] = HOSTED, **changed: object) -> str:
    """The words of a hosted acknowledgment with its process, some members of which are changed."""
    ip = {"ip": "203.0.113.7", "source": "header", "peer_ip": "10.0.0.3"}
    personal = {"process": TWO_LINES | changed, "ip": ip}
    return words_of(make_certificate(made_dossier(personal, subject=subject)))


def test_how_the_initials_of_a_hosted_acknowledgment_were_made() -> None:
    """Observations of the service, and the client's claims marked as such."""
    words = hosted_words()
    for expected in (
        "How the initials were captured",
        "from a client that had the token of a checkout session, initials for every line",
        "as the service observed it:",
        "served: a page of the service",
        f"SHA-256 of what was served: {PROCESS_JSON['rendered_digest']}",
        "all lines were received in one request, at 2026-11-20 21:31:00.123 UTC",
        "60.000 s after they were served, at 2026-11-20 21:30:00.123 UTC",
        "(B) other initials 2 time(s), last at 2026-11-20 21:32:00.123 UTC",
        f"agreement, a box that the client sent as ticked: {PROCESS_JSON['agreement']}",
        f"consent, a box that the client sent as ticked: {PROCESS_JSON['consent']}",
        "tied to the session by: a cookie that was set after an earlier identity check",
        "The client claims, and the service did not observe: \u2022 JavaScript ran: yes",
        "window: 360 x 740 CSS pixels",
        "reviewed; received at 2026-11-20 21:33:00.123 UTC = 2026-11-20 13:33:00.123 PST",
        "taken from a header that a proxy of this service sent",
        "taken from a header that the client sent",
        "that it was a browser or a person",
        "The vendor had that token, too.",
        "Anything that is marked as claimed by the client.",
        "That the buyer read or understood the notice.",
        "submitted with the token of a checkout session of the account",
    ):
        assert expected in words, expected
    assert "in the vendor's page" not in words
    assert "from a browser" not in words
    assert "never changed" not in words
    assert "the vendor named it" not in words


def test_lines_from_several_requests_have_their_own_times() -> None:
    """Each with the time since it was served, and whether others came later."""
    later = "2026-11-20T21:33:00.123Z"
    lines = [{**TWO_LINES["lines"][0], "initialed_at": later}, TWO_LINES["lines"][1]]
    words = hosted_words(lines=lines)
    assert "in one request" not in words
    assert "13:33:00.123 PST, 180.000 s after that, the same in every submission" in words
    assert "60.000 s after that, other initials 2 time(s), last at" in words


def test_changes_while_typing_are_shown_as_claimed_by_the_client() -> None:
    """The service sees submitted text, not what was typed before."""
    lines = [{**line, "changed_at": None, "changes": 0} for line in TWO_LINES["lines"]]
    claim = {"line": 1, "event": "changed", "at": "2026-11-20T21:30:30.000Z"}
    words = hosted_words(lines=lines, claimed=[claim, claim, {**claim, "line": 2}])
    assert "the same in every submission" in words
    _, _, claimed = words.partition("The client claims, and the service did not observe:")
    assert claimed.count("changed line 1; received at") == 2
    assert claimed.count("changed line 2; received at") == 1


@pytest.mark.parametrize("binding", ["identity_session", "passkey", "cookie"])
def test_a_buyer_found_by_a_check_is_described_as_such(binding: str) -> None:
    """Only an identifier that a vendor sent was not checked."""
    check = "ver_01m7xdpk1ref2w6g9w3h0n8t5c"
    found = f"Buyer identifier {PERSONAL['cbid']} found by the identity check {check}"
    assert found in hosted_words(binding=binding, verification=check)
    given = f"Buyer identifier {PERSONAL['cbid']} as given; not checked whether it exists"
    assert given in hosted_words(binding="link", verification=None)
    assert given in words_of(plain_certificate())


def test_a_component_is_the_clients_claim() -> None:
    """Like its digest; other programs of that page could change the display."""
    words = hosted_words(
        surface="component", origin="https://shop.example", rendered_digest="ab" * 32,
        reviewed_at=None, script=None, viewport=None, claimed=[], binding="{0}",
    )  # fmt: skip
    for expected in (
        "served: the text of the notice, to a client that had the session's token",
        "shown by a component in the vendor's page at https://shop.example",
        f"SHA-256 of what was shown: {'ab' * 32}",
        "review step not served by the service",
        "JavaScript ran: not known \u2022 window: not known",
        "tied to the session by: a word that this reader does not know: \u201c{0}\u201d",
        "That the notice was shown in the vendor's page, which the client claims, and that the",
        "left the notice as it was.",
    ):
        assert expected in words, expected
    unknown = "a word that this reader does not know: \u201c{surface}\u201d in the vendor's page"
    assert f"shown by {unknown} at an unknown origin" in hosted_words(surface="{surface}")


def test_times_by_the_test_clock_are_marked() -> None:
    """The record's time is always real; the times of the process follow the sandbox's clock."""
    advanced = hosted_words({**HOSTED, "test_clock": "2026-11-20T21:30:00.000Z"})
    assert "The times are by the sandbox's test clock. How the initials were made" in advanced
    assert "by this service's own clock" in advanced.partition("Accepted")[2]
    assert "test clock" not in hosted_words()


def test_a_hidden_process_is_marked_as_withheld_or_erased() -> None:
    """With `vendor_api` there is no process, and it is not mentioned."""
    hidden = "How this happened is in a personal field of the acknowledgment, which is withheld or"
    assert hidden in words_of(make_certificate(made_dossier(subject=HOSTED, show=())))
    assert hidden not in words_of(make_certificate(made_dossier(show=())))


def test_a_time_is_claimed_only_if_it_is_given() -> None:
    """A time-stamp states the time in its token, and a witness may sign one that is no date."""
    dated = words_of(make_certificate(made_dossier(timestamps=(STAMPED,))))
    assert "2026-11-22 04:05:06 UTC = 2026-11-21 20:05:06 PST according to the tokens" in dated
    assert "signatures were not checked here" in dated
    assert "if the signatures of these are valid too" in dated
    assert "saw the checkpoint at the times next to their names" not in dated
    assert "Witness cosignatures none over this checkpoint" in dated
    odd = words_of(make_certificate(made_dossier(cosigned=(("witness.example/w1", 2**62),))))
    assert "witness.example/w1, at an invalid time" in odd


def test_it_prints_whole_on_letter_and_on_a4() -> None:
    """Within the margins it is no wider than the one and no taller than the other."""
    reader = PdfReader(io.BytesIO(plain_certificate()), strict=True)
    a4_width, letter_height = 595, 792
    side = 24 / 25.4 * 72
    for page in reader.pages:
        assert page.mediabox.height <= letter_height
        assert page.mediabox.width - 2 * side < a4_width - 72 / 2


@pytest.mark.parametrize("capture", ["vendor_api", "hosted"])
def test_a_certificate_never_claims_a_legal_conclusion(capture: str) -> None:
    """It may not call itself admissible, certified, tamper-proof or legally binding."""
    words = words_of(make_certificate(made_dossier(subject={"capture": capture}))).lower()
    for claim in (
        "admissib",
        "legally binding",
        "tamper",
        "irrefutable",
        "qualified",
        "blockchain",
    ):
        assert claim not in words
    assert ("the vendor asserts what the buyer did" in words) == (capture == "vendor_api")
    assert "who typed the initials" in words


def test_the_qr_code_opens_the_verify_page_with_the_digest_of_the_record() -> None:
    """The digest stands behind `#`, so that it is never sent to a server."""
    facts = made_dossier()
    reader = PdfReader(io.BytesIO(make_certificate(facts)), strict=True)
    links = [
        link.get_object()["/A"]["/URI"]
        for page in reader.pages
        for link in page.get("/Annots") or ()
    ]
    digest = facts.records[0].digest
    assert f"https://log.example/verify#record={digest}" in links
    assert set(links) == {
        f"https://log.example/verify#record={digest}",
        "https://log.example/verify",
        "https://leginfo.legislature.ca.gov/",
    }


def test_other_facts_give_other_words() -> None:
    """Nothing of one certificate stays in the compiler for the next."""
    first, second = made_dossier(), made_dossier({"session_id": "sess_other"})
    before = make_certificate(first)
    assert "sess_other" in squeezed(words_of(make_certificate(second)))
    assert make_certificate(first) == before
    assert PERSONAL["session_id"] in words_of(before)
