"""Drafts of certifications: filled in from the deployment, and nothing asserted for a person."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from countersign.base.values import from_ms
from countersign.server.certification import DESCRIPTION, KINDS, CertificationFacts, Exhibit, draft
from countersign_evidence.dossier import Dossier, DossierRecord
from tests.docs.markdown import ROOT
from tests.sealing.acts import INITIALS, acknowledge
from tests.support.engines import ENGINES, engine_settings
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.long, pytest.mark.one_engine]

GOOD = ROOT / "spec" / "vectors" / "record" / "good"
PAGE = (ROOT / "docs" / "certifications.md").read_text(encoding="utf-8")
SESSION = "a-secret-session"


@pytest.fixture(params=ENGINES, scope="module")
def acknowledged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Deployment, str]:
    """Give a deployment of a described operator, and an acknowledgment in it."""
    data_dir = tmp_path_factory.mktemp("certification") / "data"
    made = Deployment(data_dir=data_dir, settings=engine_settings(request))
    made.run("init")
    account = made.account("vendor")
    made.run("operator", "describe", "--legal-name", "Evidence *Example* Inc.")
    with running_server(made) as server, server.client(made.key(account)) as client:
        return made, acknowledge(client, session_id=SESSION)


@pytest.mark.parametrize("kind", KINDS)
def test_a_draft_is_filled_in_from_the_deployment(
    acknowledged: tuple[Deployment, str], kind: str
) -> None:
    """With the digests of record and system description, and the operator as recorded."""
    made, ack_id = acknowledged
    view = made.read("certification", ack_id, "--for", kind)
    assert view["for"] == kind
    assert view["facts"]["acknowledgment"] == ack_id
    description = (ROOT / DESCRIPTION).read_bytes()
    assert view["facts"]["system_description_sha256"] == sha256(description).hexdigest()
    assert view["facts"]["system_description_version"] == "1"
    assert "Evidence \\*Example\\* Inc." in view["text"]
    assert "TEST MODE" in view["text"]
    assert view["facts"]["account_record_sha256"].startswith("no record of the account")


@pytest.mark.parametrize("kind", KINDS)
def test_a_draft_asserts_nothing_for_a_person(
    acknowledged: tuple[Deployment, str], kind: str
) -> None:
    """Every statement has an empty box; name, date and signature are blanks."""
    made, ack_id = acknowledged
    view = made.read("certification", ack_id, "--for", kind)
    text = view["text"]
    assert "DRAFT FOR COUNSEL'S REVIEW. NOT SIGNED. NOT A CERTIFICATION." in text
    assert "draft for counsel's review" in view["status"]
    numbered = re.findall(r"^\d+\. .*", text, re.MULTILINE)
    assert len(numbered) >= 5
    assert [line for line in numbered if "`[ ]`" not in line] == []
    blanks = " ".join(view["blanks"])
    assert all(word in blanks for word in ("full name", "date", "by hand", "COUNSEL"))
    assert "penalty of perjury" not in text.partition("## Statements")[2]


def test_a_draft_shows_no_personal_field(acknowledged: tuple[Deployment, str]) -> None:
    made, ack_id = acknowledged
    done = made.run("certification", ack_id, "--for", "902-11")
    assert SESSION not in done.stdout
    assert not any(f"[{typed}]" in done.stdout for typed in INITIALS)
    actions = [(e["action"], e["subject"]) for e in made.read("audit")]
    assert ("certification_drafted", ack_id) in actions


def test_the_digest_of_an_exhibit_is_filled_in(
    acknowledged: tuple[Deployment, str], tmp_path: Path
) -> None:
    """With the parties in its records, after verification."""
    made, ack_id = acknowledged
    exhibit = tmp_path / "exhibit.zip"
    made.run("dossier", ack_id, "--output", str(exhibit))
    view = made.read("certification", ack_id, "--for", "902-14", "--exhibit", str(exhibit))
    assert sha256(exhibit.read_bytes()).hexdigest() in view["text"]
    digest = view["facts"]["record_sha256"]
    held = {"id": ack_id, "type": "acknowledgment", "digest": digest}
    assert held in view["exhibit_records"]
    assert view["facts"]["exhibit_verified"].startswith("OK  one order, ")
    gone = made.run("certification", ack_id, "--for", "902-14", "--exhibit", "none", check=False)
    assert gone.returncode == 1


def _order(made: Deployment, session: str) -> tuple[str, str]:
    """An order that is cleared and shipped in two steps; gives acknowledgment and clearance."""
    with running_server(made) as server, server.client(made.key(_account(made))) as client:
        ack_id = acknowledge(client, session_id=session)
        buyer = {"test_mode": True, "shipping_zip": "94110"}
        cbid = client.post("/v1/buyers/verify", json=buyer).json()["cbid"]
        order = {"ack_id": ack_id, "cbid": cbid, "session_id": session, "shipping_zip": "94110"}
        clearance_id: str = client.post("/v1/clearances", json=order).json()["clearance_id"]
        for step in ({"carrier": "UPS"}, {"adult_signature_obtained": True}):
            path = f"/v1/clearances/{clearance_id}/fulfilment"
            assert client.post(path, json=step).status_code == 200
    return ack_id, clearance_id


def _account(made: Deployment) -> str:
    account: str = made.read("accounts", "list")[0]["account_id"]
    return account


@pytest.fixture(scope="module")
def ordered(acknowledged: tuple[Deployment, str]) -> tuple[Deployment, str, str]:
    """Give the same deployment with an order."""
    return acknowledged[0], *_order(acknowledged[0], "an-order")


@pytest.mark.parametrize("named", ["acknowledgment", "clearance"])
def test_every_record_of_a_dossier_is_listed_with_its_digest(
    ordered: tuple[Deployment, str, str], tmp_path: Path, named: str
) -> None:
    """The certification is about all of them, and its subject is either half of the order."""
    made, *ids = ordered
    exhibit, id_ = tmp_path / "dossier.zip", ids[named == "clearance"]
    made.run("dossier", id_, "--output", str(exhibit))
    view = made.read("certification", id_, "--for", "902-14", "--exhibit", str(exhibit))
    with zipfile.ZipFile(exhibit) as archive:
        held = {
            name.removeprefix("records/").removesuffix(".json"): sha256(archive.read(name))
            for name in archive.namelist()
            if name.startswith("records/") and name.count(".") == 1 and name.endswith(".json")
        }
    assert {one["id"]: one["digest"] for one in view["exhibit_records"]} == {
        id_: digest.hexdigest() for id_, digest in held.items()
    }
    types = {one["type"] for one in view["exhibit_records"]}
    assert types >= {"acknowledgment", "verification", "clearance", "fulfilment", "operator"}
    rows = re.findall(r"^\| \S+ \| \S+ \| `[0-9a-f]{64}` \|$", view["text"], re.MULTILINE)
    assert len(rows) == len(held)
    assert view["facts"][named] == id_
    assert view["facts"]["record_sha256"] == held[id_].hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_a_clearance_has_a_draft_of_its_own(
    ordered: tuple[Deployment, str, str], kind: str
) -> None:
    made, ack_id, clearance_id = ordered
    view = made.read("certification", clearance_id, "--for", kind)
    assert view["facts"]["acknowledgment"] == ack_id
    assert view["facts"]["cleared"] == "yes"
    assert "Evidence \\*Example\\* Inc." in view["text"]
    assert "$" not in view["text"]


def test_an_exhibit_of_another_order_is_refused(
    ordered: tuple[Deployment, str, str], acknowledged: tuple[Deployment, str], tmp_path: Path
) -> None:
    """So is a changed file, and one that is no evidence at all."""
    made, ack_id, clearance_id = ordered
    other = tmp_path / "other.zip"
    made.run("dossier", acknowledged[1], "--output", str(other))
    changed, text = tmp_path / "changed.zip", tmp_path / "text.pdf"
    changed.write_bytes(other.read_bytes().replace(b'"mode":"test"', b'"mode":"live"'))
    text.write_bytes(b"%PDF-1.7")
    for id_ in (ack_id, clearance_id):
        done = made.run(
            "certification", id_, "--for", "902-14", "--exhibit", str(other), check=False
        )
        assert done.returncode == 1
        assert f"does not hold {id_}" in done.stderr.replace("\n", " ")
    for file in (changed, text):
        done = made.run(
            "certification", acknowledged[1], "--for", "902-14", "--exhibit", str(file), check=False
        )
        assert done.returncode == 1
        assert "is no evidence that can be offered" in done.stderr.replace("\n", " ")


def test_a_bundle_is_no_exhibit_and_its_program_is_not_recommended(
    acknowledged: tuple[Deployment, str],
) -> None:
    """In the words of the verifiers: its sender can have put anything into it."""
    made, ack_id = acknowledged
    bundle = ROOT / "spec" / "vectors" / "before" / "bundle.zip"
    words = ("certification", ack_id, "--for", "902-14", "--exhibit", str(bundle))
    done = made.run(*words, check=False)
    said = " ".join(done.stderr.split())
    assert (done.returncode, "is no evidence that can be offered" in said) == (1, True)
    assert "can be whatever its sender put there" in said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["hosted", "full"])
def test_no_draft_says_that_a_browser_sent_anything(kind: str, name: str) -> None:
    """The service saw a client with the session's token; it cannot know who that was."""
    text = draft(kind, _facts(name, mode="live"), None).text
    assert "buyer's browser" not in text
    assert "a browser sent" not in text
    if name == "hosted":
        assert "a client that had the session's token" in text
        assert "cannot distinguish" in text


def test_an_unknown_acknowledgment_has_no_draft(acknowledged: tuple[Deployment, str]) -> None:
    made, ack_id = acknowledged
    other = ack_id[:-1] + ("0" if ack_id[-1] != "0" else "1")
    assert made.run("certification", other, "--for", "902-13", check=False).returncode == 1


@pytest.mark.parametrize("kind", KINDS)
def test_only_words_read_at_a_named_address_are_quoted(kind: str) -> None:
    """Every quotation of a template is on the page, with the same addresses: two at least."""
    path = ROOT / "src" / "countersign" / "server" / "certifications" / f"{kind}.md"
    law = path.read_text(encoding="utf-8").partition("## Law")[2].partition("$facts")[0]
    quoted = re.findall(r'"([^"]+)"', law)
    assert [words for words in quoted if f'"{words}"' not in PAGE] == []
    for provision in law.splitlines():
        addresses = re.findall(r"https?://\S+", provision)
        assert [address for address in addresses if address not in PAGE] == []
        hosts = {urlsplit(address).hostname for address in addresses}
        assert len(hosts) >= 2 or '"' not in provision
    assert "**not confirmed**" in law


def _facts(name: str, **changed: Any) -> CertificationFacts:  # noqa: ANN401 - any member
    record = {**json.loads((GOOD / name / "record.json").read_bytes()), **changed}
    body = json.dumps(record).encode()
    subject = DossierRecord(
        id=record["id"], type=record["type"], record=record,
        digest=sha256(body).hexdigest(), shown={}, position=0,
    )  # fmt: skip
    dossier = Dossier(
        records=(subject,), notice=None, order={}, remarks=(),
        origin="evidence.example.com/v1/log/live/1", size=1, root=bytes(32),
        cosigned=(), timestamps=(), key_fingerprint="0" * 64,
    )  # fmt: skip
    return CertificationFacts(subject, dossier, from_ms(0), None)


@pytest.mark.parametrize("name", ["full", "hosted", "parties", "parties-none", "parties-hosted"])
@pytest.mark.parametrize("kind", KINDS)
def test_records_of_both_versions_have_drafts(kind: str, name: str) -> None:
    """And a live one does not say that it is a test."""
    made = draft(kind, _facts(name, mode="live"), None)
    assert "TEST MODE" not in made.text
    assert "[FILL IN: legal name of the operator" in made.text or kind.startswith("ca-155")
    assert "$" not in made.text


@given(words=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80))
def test_text_of_a_party_is_not_markup(words: str) -> None:
    """No heading, no box, no line of its own: it cannot add to the draft."""
    operator = {"type": "operator", "legal_name": words, "address": None, "licence": None}
    party = DossierRecord(
        id="rec_1", type="operator", record=operator | {"contact": None},
        digest="ab" * 32, shown={}, position=0,
    )  # fmt: skip
    facts = _facts("parties", operator_record=party.digest)
    plain = draft("902-13", facts, None).text
    described = replace(facts.dossier, records=(party, facts.subject))
    said = draft("902-13", facts._replace(dossier=described), None).text
    assert said.count("\n") == plain.count("\n") + 2
    assert _headings(said) == _headings(plain)


def _headings(text: str) -> int:
    return sum(token.type == "heading_open" for token in MarkdownIt().parse(text))


def test_an_exhibit_is_named_by_its_digest() -> None:
    made = draft("902-14", _facts("full"), Exhibit("a|b.zip", "1" * 64, 5, "OK", ()))
    assert "a\\|b.zip, 5 bytes" in made.text
    assert made.facts["exhibit_sha256"] == "1" * 64
