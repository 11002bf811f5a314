"""`countersign buyers`: an operator's view of a buyer, acts, and their audit."""

from __future__ import annotations

import getpass
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from countersign.base.values import rfc3339
from countersign.core.access.account import set_settings
from countersign.core.buyers.model import BuyerStatus
from countersign_simulators.base import Reply, Request
from countersign_simulators.registry import SIMULATORS
from tests.cli.evidence import make_sandbox_buyer
from tests.support.acts import done
from tests.support.engines import ENGINES, engine_server
from tests.support.privacy import personal
from tests.verification.desk import Desk, desk_at
from tests.verification.inside import Insider, Stage
from tests.verification.test_review import NEW_ZIP, WITH_OPERATOR, proves
from tests.verification.test_settling import playing_another

REASON: Final = ("--reason", "case 7")
UNKNOWN: Final = f"cbid_{'0' * 26}"
REQUEST_IDS: Final = {"stripe": "req_", "persona": "", "plaid": "", "onfido": ""}
"""The providers that name their requests, and how the names begin."""

each_desk = pytest.mark.parametrize("desk", ENGINES, indirect=True)


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """Give an operator's desk, on SQLite unless the test says otherwise."""
    with desk_at(tmp_path / "data", engine_server(request)) as made:
        yield made


def verified(vendor: Insider) -> str:
    """Verify somebody; gives the cbid."""
    outcome = vendor.verify(vendor.part("verified"))
    assert outcome.view.status is BuyerStatus.VERIFIED
    return outcome.cbid


def recorded(vendor: Insider) -> tuple[str, list[Reply]]:
    """Verify somebody; returns the cbid and the provider's responses."""
    replies: list[Reply] = []

    def record(_: Request, reply: Reply) -> Reply:
        replies.append(reply)
        return reply

    with vendor.playing.mood(record):
        return verified(vendor), replies


def evidence(desk: Desk, cbid: str) -> list[dict[str, Any]]:
    """The output of `buyers evidence`."""
    shown: list[dict[str, Any]] = desk.bench.read("buyers", "evidence", cbid, *REASON)["checks"]
    return shown


def keep_responses(stage: Stage, vendor: Insider) -> None:
    """Have the account keep whole responses for a year."""
    until = stage.clock.now + timedelta(days=365)
    why = {"responses_until": until, "responses_reason": "case 7"}
    stage.do(done(set_settings, stage.opened.access, vendor.account_id, **why))


def answers(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The provider's answers in a piece of evidence, the session's own first."""
    answer = content["answer"]
    return [answer, *answer["further"]]


# --- the evidence ------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", SIMULATORS)
def test_the_evidence_is_the_providers_response_byte_for_byte(desk: Desk, provider: str) -> None:
    """For an account that keeps it: with its digest, status and time, and the provider's name."""
    vendor = desk.stage.insider(provider)
    keep_responses(desk.stage, vendor)
    before = desk.stage.clock.now - timedelta(minutes=1)
    cbid, replies = recorded(vendor)
    [shown] = evidence(desk, cbid)
    content = shown["content"]
    kept = {b64decode(answer["body"]): answer for answer in answers(content)}
    assert set(kept) == {reply.body for reply in replies}
    for reply in replies:
        answer = kept[reply.body]
        assert answer["sha256"] == sha256(reply.body).hexdigest()
        assert answer["text"].encode() == reply.body
        assert answer["http_status"] == reply.status == 200
        assert before < datetime.fromisoformat(answer["retrieved_at"])
        names = [value for _, value in reply.headers] + [reply.body.decode()]
        assert answer["request_id"] is None or any(answer["request_id"] in n for n in names)
    first = content["answer"]
    assert content["request"]["session_id"] == vendor.part("verified").session_id
    assert (first["request_id"] is not None) == (provider in REQUEST_IDS), first["request_id"]
    assert str(first["request_id"]).startswith(REQUEST_IDS.get(provider, ""))
    assert first["api_version"]
    assert (content["cbid"], content["provider"]) == (cbid, provider)


@pytest.mark.parametrize("provider", SIMULATORS)
def test_the_evidence_shows_the_grounds_of_the_decision(desk: Desk, provider: str) -> None:
    """The facts, the proof of each, the rules, the outcome; and the person."""
    vendor = desk.stage.insider(provider, minimum_age=19)
    keep_responses(desk.stage, vendor)
    session = vendor.part("verified")
    [shown] = evidence(desk, verified(vendor))
    read, decision, rules = (shown["content"][part] for part in ("read", "decision", "rules"))
    proofs = {"document", "database", "proof_of_address"}
    assert read["date_of_birth_source"] in proofs
    confirmed = [a for a in read["addresses"] if a["source"] in proofs]
    assert session.shipping_zip in {a["postal_code"][:5] for a in confirmed}
    assert "fail" not in {check["verdict"] for check in read["checks"]}
    assert read["provider_status"]
    assert (read["outcome"], read["live"]) == ("verified", True)
    assert (decision["status"], decision["reasons"]) == ("verified", [])
    assert decision["facts"]
    # Not every provider gives the time of its decision.
    assert decision["expires_at"] > (read["decided_at"] or rfc3339(desk.stage.clock.now))
    assert (rules["minimum_age"], rules["settings_revision"]) == (19, 1)
    assert shown["account_id"] == vendor.account_id
    text = "".join(answer["text"] for answer in answers(shown["content"]))
    assert personal(text) & {word.casefold() for word in session.personal}


@each_desk
def test_each_verdict_has_its_evidence_oldest_first(desk: Desk) -> None:
    """Including failed ones, of any account; a repeated verdict is written once."""
    vendor = desk.stage.insider()
    other = desk.stage.insider(vendor.playing, minimum_age=99)
    session, decided_at = vendor.part("verified"), desk.stage.clock.monotonic()
    desk.stage.provider_seconds = lambda: decided_at
    cbid = vendor.verify(session, "10001").cbid
    for asking in (vendor, vendor, other):
        desk.stage.clock.now += timedelta(seconds=1)
        assert asking.verify(session).cbid == cbid
    shown = evidence(desk, cbid)
    assert [(one["status"], one["account_id"]) for one in shown] == [
        ("failed", vendor.account_id),
        ("verified", vendor.account_id),
        ("failed", other.account_id),
    ]
    reasons = [one["content"]["decision"]["reasons"] for one in shown]
    assert reasons == [["zip_mismatch"], [], ["age_below_minimum"]]
    assert shown[0]["content"]["request"]["shipping_zip"] == "10001"


def test_without_json_the_evidence_is_readable(desk: Desk) -> None:
    """The same, on many lines; words for people apart from it."""
    cbid = verified(desk.stage.insider())
    done = desk.bench.run("buyers", "evidence", cbid, *REASON)
    assert json.loads(done.stdout) == {"cbid": cbid, "checks": evidence(desk, cbid)}
    assert len(done.stdout.splitlines()) > 50
    assert done.stderr.startswith("1 verification.\n")
    assert f"countersign audit {cbid}" in done.stderr
    assert not personal(done.stderr)


# --- who has looked ----------------------------------------------------------------------------


@each_desk
def test_each_look_is_recorded_with_who_when_and_why(desk: Desk) -> None:
    """Each look separately, without the data."""
    cbid = verified(desk.stage.insider())
    evidence(desk, cbid)
    desk.bench.run("buyers", "evidence", cbid, "--reason", "subpoena of 3 March")
    answer = desk.bench.read("buyers", "audit", cbid)
    assert [(e["action"], e["subject"], e["details"]) for e in answer] == [
        ("evidence_shown", cbid, {"reason": "case 7"}),
        ("evidence_shown", cbid, {"reason": "subpoena of 3 March"}),
    ]
    assert {entry["actor"] for entry in answer} == {getpass.getuser()}
    assert all(datetime.fromisoformat(entry["at"]).tzinfo for entry in answer)


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_no_one_looks_without_a_reason(desk: Desk, json_: tuple[str, ...]) -> None:
    """Nothing is shown, and no entry is written."""
    cbid = verified(desk.stage.insider())
    for words in ((), ("--reason", ""), ("--reason", " \t")):
        done = desk.bench.run("buyers", "evidence", cbid, *words, *json_, check=False)
        assert done.returncode in {1, 2}
        assert (done.stdout, "reason" in done.stderr) == ("", True)
        assert not personal(done.stderr)
    assert desk.acts() == []


@each_desk
def test_a_look_at_undecryptable_evidence_is_recorded_all_the_same(desk: Desk) -> None:
    """Showing fails after the entry: there is no way to look first."""
    cbid = verified(desk.stage.insider())
    # The sealed bytes of another row are as good as damaged.
    desk.stage.execute("UPDATE verification_evidence SET payload = :none", none=b"\x01" * 64)
    said = desk.bench.refused("buyers", "evidence", cbid, *REASON)
    assert "verification_evidence" in said
    assert desk.acts(cbid) == [("evidence_shown", "case 7")]


@each_desk
def test_nothing_is_shown_if_the_look_cannot_be_recorded(desk: Desk) -> None:
    """The entry comes first."""
    cbid = verified(desk.stage.insider())
    desk.stage.execute("ALTER TABLE audit_log RENAME TO gone")
    for json_ in ((), ("--json",)):
        done = desk.bench.run("buyers", "evidence", cbid, *REASON, *json_, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert not personal(done.stderr)


# --- what was erased ---------------------------------------------------------------------------


@each_desk
def test_the_evidence_of_an_erased_verification_is_shown_as_erased(desk: Desk) -> None:
    """That of the others is unchanged."""
    vendor = desk.stage.insider()
    cbid = vendor.verify(vendor.part("verified"), "10001").cbid
    assert verified(vendor) == cbid
    failed, kept = evidence(desk, cbid)
    desk.bench.run("erase", failed["verification_id"], "--yes")
    done = desk.bench.run("buyers", "evidence", cbid, *REASON, "--json")
    gone, left = json.loads(done.stdout)["checks"]
    assert left == kept
    assert gone["content"] is None
    assert datetime.fromisoformat(gone["erased_at"]).tzinfo
    assert {**gone, "content": failed["content"], "erased_at": None} == failed
    assert "2 verifications, the evidence of 1 erased." in done.stderr
    assert desk.bench.read("buyers", "show", cbid)["status"] == "verified"


@each_desk
def test_an_erased_buyer_is_reported_as_erased(desk: Desk) -> None:
    """Not for anyone else; earlier acts of operators are still listed."""
    vendor = desk.stage.insider()
    cbid = verified(vendor)
    evidence(desk, cbid)
    desk.bench.run("erase", cbid, "--yes")
    for words in (("show", cbid), ("evidence", cbid, *REASON)):
        assert f"{cbid} was erased" in desk.bench.refused("buyers", *words)
        error = json.loads(desk.bench.refused("buyers", *words, "--json"))["error"]
        assert error["code"] == "unknown_subject"
        assert "erased" not in desk.bench.refused("buyers", words[0], UNKNOWN, *words[2:])
    assert desk.acts(cbid) == []
    listed = desk.bench.run("audit").stdout
    assert "evidence_shown  erased buyer" in listed
    assert cbid not in listed


def test_only_the_revocation_is_left_of_an_erased_revoked_buyer(desk: Desk) -> None:
    """It is shown, and there is no evidence."""
    cbid = verified(desk.stage.insider())
    desk.bench.run("buyers", "revoke", cbid, *REASON, "--yes")
    desk.bench.run("erase", cbid, "--yes")
    shown = desk.bench.read("buyers", "show", cbid)
    assert shown["status"] == "revoked"
    assert (shown["verified_at"], shown["expires_at"], shown["proved"]) == (None, None, [])
    said = desk.bench.refused("buyers", "evidence", cbid, *REASON)
    assert "was erased; only the revocation remains" in " ".join(said.split())


def test_a_simulated_buyer_has_no_evidence_and_never_had(desk: Desk) -> None:
    """There was no request, so there was no response, and nothing was erased."""
    cbid = make_sandbox_buyer(desk.bench, desk.stage.insider().account_id)
    assert evidence(desk, cbid) == []
    assert desk.bench.read("buyers", "show", cbid)["livemode"] is False


# --- showing, revoking, reinstating --------------------------------------------------------------


@each_desk
def test_a_buyer_is_shown_without_personal_data(desk: Desk) -> None:
    """Status, times and proofs, in JSON and as text."""
    vendor = desk.stage.insider(minimum_age=19)
    cbid = verified(vendor)
    shown = desk.bench.read("buyers", "show", cbid)
    assert (shown["cbid"], shown["status"], shown["livemode"]) == (cbid, "verified", True)
    assert shown["account_id"] == vendor.account_id
    assert shown["verified_at"] < shown["expires_at"]
    assert len(shown["proved"]) == 1
    plain = desk.bench.run("buyers", "show", cbid).stdout
    for line in (f"cbid: {cbid}", "status: verified", f"expires_at: {shown['expires_at']}"):
        assert line in plain.splitlines()
    assert not personal(plain + json.dumps(shown))
    failed = vendor.verify(vendor.part("underage")).cbid
    answer = desk.bench.read("buyers", "show", failed)
    assert (answer["status"], answer["reasons"]) == ("failed", ["age_below_minimum"])
    assert (answer["verified_at"], answer["proved"]) == (None, [])


@each_desk
def test_a_buyer_is_revoked_and_reinstated_with_a_reason_each(desk: Desk) -> None:
    """Both are visible to accounts that ask, and in the audit; as JSON and as text."""
    vendor = desk.stage.insider()
    cbid = verified(vendor)
    before = desk.bench.read("buyers", "show", cbid)
    gone = desk.bench.run("buyers", "revoke", cbid, *REASON, "--yes", "--json")
    assert json.loads(gone.stdout)["status"] == "revoked"
    assert f"buyers reinstate {cbid}" in gone.stderr
    assert vendor.standing(cbid).status is BuyerStatus.REVOKED
    plain = desk.bench.run("buyers", "reinstate", cbid, "--reason", "a mistake").stdout
    assert "status: verified" in plain.splitlines()
    assert desk.bench.read("buyers", "show", cbid) == before
    assert vendor.standing(cbid).status is BuyerStatus.VERIFIED
    assert desk.acts(cbid) == [("buyer_revoked", "case 7"), ("buyer_reinstated", "a mistake")]
    said = desk.bench.refused("buyers", "reinstate", cbid, *REASON)
    assert "is not revoked" in said
    assert len(desk.acts(cbid)) == 2


def test_no_one_is_revoked_without_a_reason_or_a_confirmation(desk: Desk) -> None:
    """Left out, blank, or the answer no: nothing changes."""
    cbid = verified(desk.stage.insider())
    for words in (("--yes",), ("--yes", "--reason", ""), ("--yes", "--reason", " \t")):
        done = desk.bench.run("buyers", "revoke", cbid, *words, check=False)
        assert (done.returncode in {1, 2}, done.stdout) == (True, "")
        assert "reason" in done.stderr
    for typed in ("n\n", "\n", ""):
        done = desk.bench.run("buyers", "revoke", cbid, *REASON, check=False, typed=typed)
        assert (done.returncode, done.stdout) == (1, "")
    assert desk.bench.run("buyers", "reinstate", cbid, check=False).returncode == 2
    assert desk.bench.read("buyers", "show", cbid)["status"] == "verified"
    assert desk.acts() == []
    asked = desk.bench.run("buyers", "revoke", cbid, *REASON, typed="y\n")
    assert f"Revoke {cbid} at every vendor?" in asked.stderr
    assert desk.bench.read("buyers", "show", cbid)["status"] == "revoked"


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_an_unknown_subject_is_refused_and_not_recorded(desk: Desk, json_: tuple[str, ...]) -> None:
    """A mistyped identifier, one of something else, one that would be a path."""
    account_id = desk.stage.insider().account_id
    for cbid in (UNKNOWN, account_id, "cbid_", "", "../../etc/passwd", "é"):
        for words in (
            ("show",),
            ("revoke", "--yes", *REASON),
            ("reinstate", *REASON),
            ("evidence", *REASON),
        ):
            said = desk.bench.refused("buyers", words[0], cbid, *words[1:], *json_)
            assert "does not exist" in said or "was not found" in said, words
    assert desk.acts() == []


@each_desk
def test_the_review_queue_is_listed_and_decided_on(desk: Desk) -> None:
    """Of all accounts or of one; the decision counts for all, and names who typed it."""
    vendor = desk.stage.insider(zip_sources=WITH_OPERATOR)
    other = desk.stage.insider(vendor.playing, zip_sources=WITH_OPERATOR)
    young = vendor.verify(vendor.part("underage")).cbid
    desk.stage.clock.now += timedelta(seconds=1)
    moved = vendor.verify(vendor.part("verified"), NEW_ZIP).cbid

    def queue(*words: str) -> list[str]:
        return [one["cbid"] for one in desk.bench.read("buyers", "queue", *words)]

    assert queue() == queue("--account", vendor.account_id) == [young, moved]
    assert queue("--account", other.account_id) == queue("--mode", "test") == []
    assert queue("--status", "pending") == []
    first = desk.bench.run("buyers", "queue", "--limit", "1")
    assert ("age_below_minimum" in first.stdout, moved in first.stdout) == (True, False)
    assert "There are more" in first.stderr
    desk.bench.run("buyers", "decide", young, "dismiss", *REASON, "--yes")
    assert queue() == [moved]
    said = desk.bench.refused("buyers", "decide", moved, "accept_zip", *REASON, "--yes")
    assert "--zip" in said
    bill = ("--zip", NEW_ZIP, "--document", "a utility bill")
    said = desk.bench.refused("buyers", "decide", moved, "dismiss", *bill, *REASON, "--yes")
    assert "Only accept_zip takes a ZIP code" in said
    decided = desk.bench.read("buyers", "decide", moved, "accept_zip", *bill, *REASON, "--yes")
    assert (decided["cbid"], decided["status"]) == (moved, "verified")
    assert (queue(), proves(vendor, moved), proves(other, moved)) == ([], True, True)
    assert "not in the review queue" in desk.bench.refused(
        "buyers", "decide", young, "dismiss", *REASON, "--yes"
    )
    acts = [("buyer_review_dismissed", "case 7"), ("buyer_zip_accepted", "case 7")]
    assert desk.acts() == acts
    noted = [one for cbid in (young, moved) for one in desk.bench.read("buyers", "audit", cbid)]
    assert {one["actor"] for one in noted} == {getpass.getuser()}


def test_all_that_operators_did_is_listed_oldest_first(desk: Desk) -> None:
    """Of one buyer, of one account, or of all; for an unknown one, nothing."""
    vendor = desk.stage.insider()
    first = verified(vendor)
    second = vendor.verify(vendor.part("verified", 1)).cbid
    desk.bench.run("buyers", "revoke", second, *REASON, "--yes")
    desk.bench.run("buyers", "evidence", first, *REASON)
    assert desk.acts() == [("buyer_revoked", "case 7"), ("evidence_shown", "case 7")]
    assert desk.acts(first) == [("evidence_shown", "case 7")]
    of_account = desk.bench.read("buyers", "audit", vendor.account_id)
    assert sorted(entry["action"] for entry in of_account) == [
        "account_created",
        "verification_settings_changed",
    ]
    plain = desk.bench.run("buyers", "audit", second).stdout
    assert [word in plain for word in ("buyer_revoked", second, "case 7", first)] == [
        True,
        True,
        True,
        False,
    ]
    assert desk.bench.read("buyers", "audit", UNKNOWN) == []
    nothing = desk.bench.run("buyers", "audit", UNKNOWN)
    assert (nothing.stdout, nothing.stderr) == ("", "No entries.\n")


@each_desk
def test_a_person_with_two_identifiers_is_found_by_either(desk: Desk) -> None:
    """Evidence, acts and revocations are the person's, whichever identifier is given."""
    vendor = desk.stage.insider()
    decided = vendor.part("verified")
    pending = replace(
        vendor.part("pending"), shipping_zip=decided.shipping_zip, subject_reference=None
    )
    older = vendor.verify(pending).cbid
    evidence(desk, older)
    desk.stage.clock.now += timedelta(seconds=1)
    known = verified(vendor)
    desk.stage.clock.now += timedelta(seconds=1)
    with playing_another(vendor, pending, decided):
        assert vendor.verify(pending).cbid == known != older
    assert [one["status"] for one in evidence(desk, older)] == ["pending", "verified", "verified"]
    assert evidence(desk, known) == evidence(desk, older)
    assert len(desk.acts(older)) == 4
    revoked = desk.bench.read("buyers", "revoke", older, *REASON, "--yes")
    assert (revoked["cbid"], revoked["status"]) == (known, "revoked")
    assert desk.acts(older)[-1] == desk.acts(known)[-1] == ("buyer_revoked", "case 7")
