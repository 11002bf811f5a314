"""Make the vectors of dossiers: `python spec/vectors/dossier/make_vectors.py`.

Each is of a log of its own, with the keys of `../log`: the records of one or two orders, sealed in
the order in which they came to be. Of these come good dossiers, and the same with one thing broken.
Nothing is drawn at random and nothing depends on the time, so a run changes nothing unless the
format has changed; and a format that is published does not change, it gets a new version.
"""

# ruff: noqa: INP001, T201 - a script beside the files that it makes

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from countersign_evidence.canonical import Json, canonical_json
from countersign_evidence.disclosure import b64url, b64url_each, disclose
from countersign_evidence.dossier import (
    SUMS,
    TYPES,
    DossierContents,
    RecordFiles,
    read_container,
    sums,
    write_container,
    write_dossier,
)
from countersign_evidence.note import Signer
from countersign_evidence.offline.verify import PREFIXES
from countersign_evidence.proof import format_proof, parse_proof

ROOT = Path(__file__).parent
AT = "2026-11-20T21:31:0{}.123Z"
ACCOUNT, OTHER_ACCOUNT = "acct_01kdtvz9n8f6ywn3x2qk4c7r5a", "acct_01kdtvz9n8f6ywn3x2qk4c7r5b"
CBID, OTHER_CBID = (f"cbid_test_01fwhe4ydgfk1shh6w1g60ee{end}" for end in ("cf", "cg"))
SESSION = "sess_8c1f"


def _log_vectors() -> ModuleType:
    """The script that makes the vectors of the log: its log, keys and policy are those of here."""
    name = "make_log_vectors_for_dossiers"
    spec = spec_from_file_location(name, ROOT.parent / "log" / "make_vectors.py")
    assert spec  # noqa: S101 - it is there
    assert spec.loader  # noqa: S101
    module = module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up by name while it is made
    spec.loader.exec_module(module)
    return module


LOG = _log_vectors()


@dataclass(frozen=True)
class Made:
    """A record, and its encoded disclosures by name."""

    members: Mapping[str, Json]
    disclosures: Mapping[str, str]

    @property
    def id(self) -> str:
        """Its identifier."""
        return str(self.members["id"])

    @property
    def body(self) -> bytes:
        """Its bytes."""
        return canonical_json(dict(self.members))

    @property
    def digest(self) -> str:
        """The hex SHA-256 of its bytes."""
        return sha256(self.body).hexdigest()

    def changed(self, **members: Json) -> Made:
        """The same with other members; None leaves one out."""
        both = {**self.members, **members}
        left = {n: v for n, v in both.items() if v is not None or n not in members}
        return replace(self, members=left)

    def named(self, **digests: str | None) -> Made:
        """The same in version 2, naming these records of the parties."""
        own = {"operator_record": None, "account_record": None, **digests}
        return replace(self, members={**self.members, "v": 2, **own})

    def showing(self, *names: str) -> Made:
        """The same with these disclosures only."""
        return replace(self, disclosures={name: self.disclosures[name] for name in names})


def made(
    kind: str, number: int, personal: Mapping[str, object] | None = None, **members: Json
) -> Made:
    """A record; `number` is what its identifier and its random bytes are made of."""
    prefix = PREFIXES.get(kind, "rec")
    fields = list((personal or {}).items())
    salts = [b64url(bytes([number, place]) * 8) for place in range(len(fields))]
    lines, digests = disclose([(salt, *field) for salt, field in zip(salts, fields, strict=True)])
    encoded = b64url_each(lines)
    common: dict[str, Json] = {
        "v": 1,
        "type": kind,
        "id": f"{prefix}_01m7xdxbmvex7t29vh2x05yy{number:02}",
        "mode": "test",
        "at": AT.format(number % 10),
        "nonce": b64url(bytes([number]) * 16),
        "_sd": sorted(digests),
        "_sd_alg": "sha-256",
    }
    return Made({**common, **members}, dict(zip(dict(fields), encoded, strict=True)))


def acknowledgment(name: str = "full", id_: str | None = None) -> Made:
    """That of `../record/good`, of version 1."""
    folder = ROOT.parent / "record" / "good" / name
    encoded = json.loads((folder / "disclosures.json").read_bytes())
    names = ["initials_per_line", "session_id", "cbid", "ip", "user_agent", "process"]
    members = json.loads((folder / "record.json").read_bytes())
    own = {"id": id_} if id_ else {}
    return Made({**members, **own}, dict(zip(names, encoded, strict=False)))


NOTICE = (ROOT.parent / "record" / "good" / "full" / "notice.json").read_bytes()
NOTHING_KNOWN: dict[str, Json] = dict.fromkeys(("address", "licence", "contact", "previous"))


def verification(number: int, cbid: str = CBID, account: str = ACCOUNT) -> Made:
    """An identity check."""
    personal = {
        "cbid": cbid,
        "provider_identity_session_id": None,
        "result": {"status": "verified", "reasons": []},
    }
    return made(
        "verification", number, personal, account=account, provider="sandbox", simulated=True
    )


def shipping(*classes: str) -> dict[str, object]:
    """Where goods of these classes go, as a clearance discloses it."""
    several = {"product_classes": [*classes]} if len(classes) > 1 else {}
    one = None if several else classes[0]
    return {"zip": "94103", "address": None, "product_class": one, **several}


def clearance(
    number: int,
    ack_id: str | None,
    check: object = ...,
    cbid: str = CBID,
    goods: Sequence[str] = ("long_gun",),
    **members: Json,
) -> Made:
    """A clearance of the session; with `check` of version 2, which discloses what it relied on."""
    personal: dict[str, object] = {
        "cbid": cbid,
        "session_id": SESSION,
        "shipping": shipping(*goods),
    }
    if check is not ...:
        personal["verification"] = check
    own: dict[str, Json] = {
        "account": ACCOUNT,
        "ack_id": ack_id,
        "cleared": True,
        "reasons": [],
        "obligations": [],
        "expires_at": "2026-11-21T21:31:05Z",
        **members,
    }
    return made("clearance", number, personal, **own)


def fulfilment(number: int, clearance_id: str) -> Made:
    """A report on an order."""
    personal = {"carrier": "a carrier", "tracking_number": "1Z"}
    return made(
        "fulfilment",
        number,
        personal,
        account=ACCOUNT,
        clearance_id=clearance_id,
        adult_signature_obtained=True,
        shipped_at="2026-11-21T16:05:00Z",
        delivered_at=None,
    )


def override(number: int, clearance_id: str, people: int, *reasons: str) -> Made:
    """A manual override of a refusal."""
    actors = PEOPLE[:people] or KEYS
    return override_by(number, clearance_id, people, actors, *reasons)


KEYS = ["key_01m7xdxbmvex7t29vh2x05yy99"]
PEOPLE = ["per_01m7xdxbmvex7t29vh2x05yy99", "per_01m7xdxbmvex7t29vh2x05yy9a"]


def override_by(
    number: int,
    clearance_id: str,
    people: int,
    actors: Sequence[str],
    *reasons: str,
    why: str = "case 4712",
    claimed: str | None = "shop user 17",
    **members: Json,
) -> Made:
    """The same, as by whomever."""
    by = [{"actor": actor, "reason": why} for actor in actors]
    personal = {"override": {"by": by, "claimed_user": None if people else claimed}}
    own: dict[str, Json] = {"clearance_id": clearance_id, "people": people}
    own |= {"obligations": [{"type": "compared", "what": "zip"}], "reasons": [*reasons], **members}
    return made("override", number, personal, account=ACCOUNT, **own)


def notice_event(number: int, event: str, notice: bytes = NOTICE) -> Made:
    """An event of the notice."""
    return made(
        "notice_event",
        number,
        event=event,
        notice_id="ab1263",
        notice_version="2026-01-01-incomplete",
        notice_digest=sha256(notice).hexdigest(),
    )


def erasure(number: int, *erased: str) -> Made:
    """The disclosures of these records were deleted."""
    return made("erasure", number, account=ACCOUNT, erased=list(erased), reason="request")


OPERATOR = made("operator", 1, legal_name="An Operator, Inc.", **NOTHING_KNOWN)
OPERATOR_2 = made(
    "operator", 2, legal_name="Another Name, Inc.", **{**NOTHING_KNOWN, "previous": OPERATOR.digest}
)
VENDOR = made("account", 3, account=ACCOUNT, name="vendor", legal_name="A Vendor", **NOTHING_KNOWN)
PROCESS = made(
    "capture_process",
    4,
    account=ACCOUNT,
    version=1,
    statement="Our page shows each line and takes initials below it.",
    previous=None,
)
PUBLISHED, REVIEWED = notice_event(5, "published"), notice_event(6, "reviewed")
NAMED = {"operator_record": OPERATOR.digest, "account_record": VENDOR.digest}
CHECK = verification(20).named(**NAMED)
ACK = acknowledgment().named(**NAMED, capture_process=PROCESS.digest)
CLEARED = clearance(21, ACK.id, CHECK.id).named(**NAMED)
FULFILLED = fulfilment(22, CLEARED.id).named(**NAMED)
PARTIES = (OPERATOR, VENDOR, PROCESS, PUBLISHED, REVIEWED)
ORDER = (*PARTIES, CHECK, ACK, CLEARED, FULFILLED)
OTHER_CHECK = verification(30, OTHER_CBID).named(**NAMED)
OTHER_ACK = acknowledgment(id_="ack_01m7xdxbmvex7t29vh2x05yyyr").named(
    **NAMED, capture_process=PROCESS.digest
)
OTHER_CLEARED = clearance(31, OTHER_ACK.id, OTHER_CHECK.id, OTHER_CBID).named(**NAMED)
OTHER_FULFILLED = fulfilment(32, OTHER_CLEARED.id).named(**NAMED)
OTHERS = (OTHER_CHECK, OTHER_ACK, OTHER_CLEARED, OTHER_FULFILLED)
LIVE, LIVE_SEED = "evidence.example.com:8443/v1/log/live/1", bytes([8]) * 32
FILLERS = (b"filler 1", b"filler 2", b"filler 3")


def dossier(
    *sealed: Made, of: Sequence[Made] | None = None, live: bool = False, notice: bytes = NOTICE
) -> DossierContents:
    """The dossier of records (all that are sealed, if none are given); the tools are stand-ins."""
    own = {"origin": LIVE, "seed": LIVE_SEED} if live else {}
    log = LOG.Log((*(record.body for record in sealed), *FILLERS), **own)
    places = {record.id: index for index, record in enumerate(sealed)}
    chosen = sealed if of is None else of
    order = [*TYPES, "key_rotation"]
    chosen = sorted(chosen, key=lambda r: (order.index(str(r.members["type"])), places[r.id]))
    return DossierContents(
        records={
            record.id: RecordFiles(
                record.body,
                tuple(record.disclosures.values()),
                format_proof(log.proof(places[record.id])),
            )
            for record in chosen
        },
        notice=notice if any(record.id.startswith("ack_") for record in chosen) else None,
        policy=live_policy() if live else LOG.policy(),
        pdf=b"%PDF-1.7 stand-in\n",
        verify_py=b"# stand-in\n",
        verify_html=b"<!doctype html><title>stand-in</title>\n",
    )


def live_policy() -> bytes:
    """That of the live log; its witness is the same."""
    log = Signer.from_seed(LIVE, LIVE_SEED).verifier.vkey
    return b"\n".join([f"log {log}".encode(), *LOG.policy().split(b"\n")[1:]])


def live_order() -> list[Made]:
    """The records of the order, all of mode live; each names the parties by their digests there."""
    digests = {one.digest: one.changed(mode="live").digest for one in PARTIES}

    def moved(record: Made) -> Made:
        named = {name: digests.get(str(value)) for name, value in record.members.items()}
        found = {name: digest for name, digest in named.items() if digest is not None}
        return record.changed(mode="live", **found)

    return [moved(record) for record in ORDER]


def version_1() -> list[Made]:
    """An order whose records are all of version 1: its check is joined by the buyer."""
    check, ack = verification(20), acknowledgment()
    cleared = clearance(21, ack.id)
    return [PUBLISHED, check, ack, cleared, fulfilment(22, cleared.id)]


def hosted(name: str = "hosted") -> list[Made]:
    """A hosted acknowledgment, and the check that its process names."""
    ack = acknowledgment(name).named(**NAMED)
    check = verification(20).changed(id="ver_01m7xdpk1ref2w6g9w3h0n8t5c").named(**NAMED)
    cleared = clearance(21, ack.id, None).named(**NAMED)
    return [OPERATOR, VENDOR, PUBLISHED, check, ack, cleared]


REASONS = ("buyer_mismatch", "buyer_not_found")
REFUSED = clearance(
    21, ACK.id, None, OTHER_CBID, cleared=False, reasons=[*REASONS], expires_at=None
).named(**NAMED)


WAIVED: dict[str, Json] = {
    "notice_id": "ab1263",
    "version": "2026-01-01-incomplete",
    "required": "not_required",
    "rule": {"id": "ab1263", "version": "2"},
    "reviewed": False,
    "reasons": ["delivered_to_state", "exempt"],
    "exemption": {
        "kind": "licensed_dealer",
        "needs": ["number", "expires_on", "evidence_reference"],
        "waives": ["notice"],
        "source": "Law of these vectors, section 2",
    },
}


def waived(exemption: Mapping[str, Json] | None = None, **members: Json) -> dict[str, Json]:
    """The waived notice with other members, and another exemption of its rule."""
    rule = WAIVED["exemption"]
    assert isinstance(rule, dict)  # noqa: S101 - for the types
    return {**WAIVED, "exemption": {**rule, **(exemption or {})}, **members}


def exempt(
    expires_on: str = "2027-06-30",
    *,
    goods: str = "accessory",
    given: Mapping[str, object] | None = None,
    **members: Json,
) -> Made:
    """A clearance without an acknowledgment, by an exemption that the vendor asserts."""
    personal: dict[str, object] = {
        "cbid": CBID,
        "session_id": SESSION,
        "shipping": shipping(goods),
        "verification": CHECK.id,
        "exemption": {
            "reason": "licensed dealer",
            "evidence_reference": "doc-2931",
            "kind": "licensed_dealer",
            "number": "1-23-456-78-9A-12345",
            "expires_on": expires_on,
            **(given or {}),
        },
    }
    names = ("account", "cleared", "reasons", "obligations", "expires_at")
    own = {name: CLEARED.members[name] for name in names} | {"ack_id": None, **members}
    return made("clearance", 21, personal, **own).named(**NAMED)


def exempt_order(clearance: Made) -> DossierContents:
    """The order of this clearance."""
    return dossier(OPERATOR, VENDOR, CHECK, clearance, FULFILLED)


def overridden(refused: Made, people: int) -> list[Made]:
    """The manual override of this refusal."""
    return [override(24, refused.id, people, *REASONS).named(**NAMED)]


def good() -> dict[str, DossierContents]:
    """Those that verify."""
    refused = REFUSED
    alone = clearance(
        21, None, None, cleared=False, reasons=["acknowledgment_not_found"], expires_at=None
    ).named()
    later = fulfilment(23, CLEARED.id).named(operator_record=OPERATOR_2.digest)
    bare = [record.showing() for record in (ACK, CLEARED, FULFILLED)]
    return {
        "order": dossier(*ORDER),
        "two-orders": dossier(*ORDER, *OTHERS, of=ORDER),
        "the-other-order": dossier(*ORDER, *OTHERS, of=[*PARTIES, *OTHERS]),
        "withheld": dossier(*ORDER, of=[*PARTIES, *bare]),
        "cbid-withheld": dossier(
            *ORDER,
            of=[*PARTIES, CHECK.showing("result"), ACK, CLEARED.showing("verification"), FULFILLED],
        ),
        "erased": dossier(
            *ORDER,
            *(erasure(40 + n, record.id) for n, record in enumerate(bare)),
            of=[*PARTIES, *bare, *(erasure(40 + n, record.id) for n, record in enumerate(bare))],
        ),
        "version-1": dossier(*version_1()),
        "hosted": dossier(*hosted()),
        "hosted-adopted": dossier(*hosted("hosted-adopted")),
        "acknowledgment-alone": dossier(*ORDER, of=[*PARTIES, ACK]),
        "clearance-alone": dossier(alone),
        "clearance-without-acknowledgment": dossier(*ORDER, of=[OPERATOR, VENDOR, CHECK, CLEARED]),
        "exempt": exempt_order(exempt(exempt_from=[WAIVED])),
        "exempt-licence-withheld": exempt_order(
            exempt(exempt_from=[WAIVED]).showing("cbid", "verification")
        ),
        "refused": dossier(*PARTIES, ACK, refused),
        "overridden": dossier(*PARTIES, ACK, refused, *overridden(refused, 2)),
        "overridden-by-key": dossier(*PARTIES, ACK, refused, *overridden(refused, 0)),
        "override-erased": dossier(
            *PARTIES, ACK, refused, *[one.showing() for one in overridden(refused, 1)]
        ),
        "another-identifier": dossier(
            *PARTIES, CHECK, ACK, clearance(21, ACK.id, CHECK.id, OTHER_CBID).named(**NAMED)
        ),
        "operator-changed": dossier(*PARTIES, CHECK, ACK, CLEARED, FULFILLED, OPERATOR_2, later),
        "parties-withheld": dossier(*ORDER, of=[CHECK, ACK, CLEARED, FULFILLED]),
        "check-of-the-buyer": dossier(*PARTIES, CHECK, ACK),
        "stamped": replace(dossier(*ORDER), timestamps=stamps("sha256", "sha384", "sha512")),
    }


def stamps(*names: str) -> dict[str, bytes]:
    """Time-stamps of `timestamps/`, by their names in a dossier."""
    return {f"timestamps/{n}.tsr": (ROOT / "timestamps" / f"{n}.tsr").read_bytes() for n in names}


def broken_joins() -> dict[str, tuple[str, DossierContents]]:
    """Each record is in the log, and in good order; but not all of them are of one order."""
    two = [*ORDER, *OTHERS]
    ack, cleared = ACK.id, CLEARED.id
    unnamed = ACK.named(capture_process=PROCESS.digest)

    def with_(*others: Made, without: Sequence[Made] = ()) -> DossierContents:
        kept = [record for record in ORDER if record not in without]
        return dossier(*two, *(o for o in others if o not in two), of=[*kept, *others])

    foreign = verification(33, account=OTHER_ACCOUNT).named()
    relies_on_foreign = clearance(34, ack, foreign.id).named(**NAMED)
    session = clearance(34, ack, CHECK.id).named(**NAMED)
    other_session = made(
        "clearance",
        35,
        {"cbid": CBID, "session_id": "sess_other", "verification": CHECK.id},
        **{name: session.members[name] for name in ("account", "ack_id", "cleared", "reasons")},
        obligations=[],
        expires_at=session.members["expires_at"],
    ).named(**NAMED)
    older = clearance(34, ack)  # of version 1
    return {
        "two-acknowledgments": (
            "the acknowledgment of another order as well",
            with_(OTHER_ACK),
        ),
        "two-clearances": ("the clearance of another order as well", with_(OTHER_CLEARED)),
        "no-order": (
            "neither an acknowledgment nor a clearance",
            dossier(*ORDER, of=[OPERATOR, CHECK]),
        ),
        "other-acknowledgment": (
            "the acknowledgment of another order",
            with_(OTHER_ACK, without=[ACK]),
        ),
        "other-clearance": (
            "the clearance of another order, and its report",
            with_(OTHER_CLEARED, OTHER_FULFILLED, without=[CLEARED, FULFILLED]),
        ),
        "other-check": ("the check of another order", with_(OTHER_CHECK, without=[CHECK])),
        "second-check": ("the check of another order as well", with_(OTHER_CHECK)),
        "check-of-the-same-buyer": (
            "another check of the buyer, on which the clearance did not rely",
            with_(SAME_BUYER),
        ),
        "check-of-other-account": (
            "the clearance relied on a check of another account, which is shown",
            with_(foreign, relies_on_foreign, without=[CHECK, CLEARED, FULFILLED]),
        ),
        "check-not-named": (
            "which check the clearance relied on is withheld",
            with_(CLEARED.showing("cbid", "session_id"), without=[CLEARED]),
        ),
        "check-by-other-cbid": (
            "version 1: the check is of another buyer",
            dossier(*version_1(), OTHER_CHECK, of=[*version_1(), OTHER_CHECK]),
        ),
        "check-without-cbid": (
            "version 1: the buyer of the check is withheld",
            dossier(*version_1(), of=[CHECK_1.showing("result"), *version_1()[2:]]),
        ),
        "check-by-no-cbid": (
            "version 1: the buyer of the order is withheld",
            dossier(
                *version_1(),
                of=[CHECK_1, *(record.showing("session_id") for record in version_1()[2:4])],
            ),
        ),
        "check-of-other-session": (
            "a hosted acknowledgment that names another check",
            dossier(*hosted(), CHECK_1, of=[*hosted(), CHECK_1]),
        ),
        "two-checks-of-the-buyer": (
            "two checks of the buyer of an acknowledgment alone",
            dossier(*ORDER, SAME_BUYER, of=[*PARTIES, ACK, CHECK, SAME_BUYER]),
        ),
        "two-checks-of-version-1": (
            "version 1: two checks of the buyer",
            dossier(*version_1(), verification(33)),
        ),
        "check-besides-the-session": (
            "a hosted acknowledgment alone, the check that it names, and another of its buyer",
            dossier(*hosted(), SAME_BUYER, of=[*hosted()[:-1], SAME_BUYER]),
        ),
        "other-report": ("the report on another order", with_(OTHER_FULFILLED)),
        "report-without-clearance": (
            "a report, and not the clearance that it is on",
            with_(without=[CLEARED, CHECK]),
        ),
        "other-notice-event": (
            "an event of another notice",
            with_(notice_event(36, "published", b"{}")),
        ),
        "notice-event-alone": (
            "an event of a notice, and no acknowledgment",
            dossier(*ORDER, of=[PUBLISHED, CHECK, CLEARED]),
        ),
        "operator-not-named": ("a record of the operator that none names", with_(OPERATOR_2)),
        "account-not-named": (
            "a record of the account that none names",
            with_(VENDOR.changed(id="rec_01m7xdxbmvex7t29vh2x05yy37")),
        ),
        "capture-process-not-named": (
            "a capture process that the acknowledgment does not name",
            with_(PROCESS.changed(id="rec_01m7xdxbmvex7t29vh2x05yy38")),
        ),
        "parties-of-version-1": (
            "a record of the operator; those of version 1 name none",
            dossier(OPERATOR, *version_1()),
        ),
        "operator-as-account": (
            "the account record of an operator's digest",
            dossier(
                OPERATOR,
                VENDOR,
                unnamed.changed(operator_record=VENDOR.digest),
                of=[VENDOR, unnamed.changed(operator_record=VENDOR.digest)],
            ),
        ),
        "override-of-cleared": (
            "the override of an order that was cleared",
            with_(override(24, cleared, 1).named(**NAMED)),
        ),
        "override-of-other": (
            "the override of another refusal",
            with_(override(24, OTHER_CLEARED.id, 1).named(**NAMED)),
        ),
        "override-reasons": (
            "an override of other reasons than the refusal's",
            dossier(*PARTIES, ACK, REFUSED, override(24, REFUSED.id, 1, REASONS[0]).named(**NAMED)),
        ),
        **{
            f"override-by-{name}": (
                f"an override of {people} people, by {name}",
                dossier(
                    *(*PARTIES, ACK, REFUSED),
                    override_by(24, REFUSED.id, people, actors, *REASONS).named(**NAMED),
                ),
            )
            for name, people, actors in (
                ("one-of-two", 2, PEOPLE[:1]),
                ("one-twice", 2, PEOPLE[:1] * 2),
                ("nobody", 1, []),
                ("a-person-as-key", 0, PEOPLE[:1]),
                ("a-key-as-person", 1, KEYS),
                ("nobody-known", 0, ["nobody"]),
                ("no-identifier", 0, ["key_1"]),
            )
        },
        **{
            f"override-for-{name}": (
                f"an override with a key, for {name.replace('-', ' ')}",
                dossier(
                    *PARTIES,
                    ACK,
                    REFUSED,
                    override_by(24, REFUSED.id, 0, KEYS, *REASONS, claimed=claimed).named(**NAMED),
                ),
            )
            for name, claimed in (("no-user", None), ("a-blank-user", " "))
        },
        "override-without-obligations": (
            "an override without obligations",
            dossier(
                *PARTIES,
                ACK,
                REFUSED,
                override_by(24, REFUSED.id, 0, KEYS, *REASONS, obligations=[]).named(**NAMED),
            ),
        ),
        **{
            f"override-of-{reason.replace('_', '-')}": (
                f"an override of a refusal for `{reason}`",
                dossier(
                    *PARTIES, ACK, one, override(24, one.id, 1, *REASONS, reason).named(**NAMED)
                ),
            )
            for reason in ("notice_not_sufficient", "product_class_missing")
            for one in [REFUSED.changed(reasons=[*REASONS, reason])]
        },
        "overridden-twice": (
            "two overrides of one refusal",
            dossier(
                *(*PARTIES, ACK, REFUSED, *overridden(REFUSED, 1)),
                override(25, REFUSED.id, 1, *REASONS).named(**NAMED),
            ),
        ),
        "override-alone": (
            "an override, and neither acknowledgment nor clearance",
            dossier(*PARTIES, ACK, REFUSED, *overridden(REFUSED, 1), of=overridden(REFUSED, 1)),
        ),
        "erasure-of-other": (
            "the erasure of a record that is not there",
            with_(erasure(39, OTHER_ACK.id)),
        ),
        "erasure-of-none": ("an erasure that names no record", with_(erasure(39))),
        "other-account": (
            "the clearance is of another account",
            with_(
                CLEARED.changed(account=OTHER_ACCOUNT, id="clr_01m7xdxbmvex7t29vh2x05yy39"),
                without=[CLEARED, FULFILLED],
            ),
        ),
        "other-session": (
            "cleared for another session than the acknowledgment's",
            with_(other_session, without=[CLEARED, FULFILLED]),
        ),
        "acknowledgment-id-null": (
            "the clearance names no acknowledgment, and one is there",
            with_(
                clearance(34, None, CHECK.id, cleared=False).named(**NAMED),
                without=[CLEARED, FULFILLED],
            ),
        ),
        "report-on-an-earlier-clearance": (
            "a report on another clearance of the same acknowledgment",
            with_(clearance(34, ack, CHECK.id).named(**NAMED), without=[CLEARED]),
        ),
        "check-of-mixed-versions": (
            "a clearance of version 1, and a check of another buyer",
            with_(older, OTHER_CHECK, without=[CLEARED, FULFILLED, CHECK]),
        ),
        "report-swapped": (
            "the report names the clearance by another identifier",
            with_(fulfilment(39, cleared[:-1] + "2").named(**NAMED), without=[FULFILLED]),
        ),
    }


def contradictory() -> dict[str, tuple[str, DossierContents]]:
    """Decisions that contradict themselves; the records are those of one order."""

    def decided(**members: Json) -> DossierContents:
        new = replace(CLEARED, members={**CLEARED.members, **members})
        return dossier(*(new if one is CLEARED else one for one in ORDER))

    refused: dict[str, Json] = {"cleared": False, "reasons": ["zip_mismatch"], "expires_at": None}
    label: list[Json] = [{"label": "Adult signature"}]
    return {
        "cleared-with-reasons": ("cleared, with a reason", decided(reasons=["zip_mismatch"])),
        "cleared-without-end": ("cleared, and `expires_at` is null", decided(expires_at=None)),
        "cleared-until-before": (
            "cleared until a time before the decision",
            decided(expires_at="2020-01-01T00:00:00Z"),
        ),
        "refused-with-end": (
            "refused, with the end of a validity",
            decided(**refused | {"expires_at": "2026-11-21T21:31:05Z"}),
        ),
        "refused-with-obligations": (
            "refused, with obligations",
            decided(**refused | {"obligations": label}),
        ),
        "cleared-by-nothing": (
            "cleared without an acknowledgment, and without `exempt_from`",
            exempt_order(exempt()),
        ),
        "exempt-from-nothing": (
            "cleared without an acknowledgment, and `exempt_from` is empty",
            exempt_order(exempt(exempt_from=[])),
        ),
        "exempt-with-acknowledgment": (
            "`exempt_from`, and an acknowledgment is named",
            decided(exempt_from=[WAIVED]),
        ),
        "exempt-and-refused": (
            "`exempt_from`, and the order is refused",
            exempt_order(exempt(exempt_from=[WAIVED], **refused)),
        ),
        "cleared-by-a-blank": ("cleared, and `ack_id` is empty", exempt_order(exempt(ack_id=""))),
        "cleared-by-a-check": (
            "cleared, and `ack_id` is the identifier of a check",
            exempt_order(exempt(ack_id=CHECK.id)),
        ),
        "exempt-twice": (
            "`exempt_from` has one notice twice",
            exempt_order(exempt(exempt_from=[WAIVED, WAIVED])),
        ),
        "exempt-of-age": (
            "the exemption in `exempt_from` does not waive the notice",
            exempt_order(exempt(exempt_from=[waived({"waives": ["age", "address"]})])),
        ),
        "exempt-by-another-kind": (
            "the exemption in `exempt_from` is of another kind than the one that is shown",
            exempt_order(exempt(exempt_from=[waived({"kind": "law_enforcement"})])),
        ),
        "exempt-by-a-fact-of-no-name": (
            "the exemption that is shown lacks a fact that the one in `exempt_from` needs",
            exempt_order(exempt(exempt_from=[waived({"needs": ["number", "constructor"]})])),
        ),
        **{
            f"exempt-by-a-fact-{name}": (
                f"`number` of the exemption that is shown is {name}, and the rule needs it",
                exempt_order(exempt(exempt_from=[WAIVED], given={"number": number})),
            )
            for name, number in (("null", None), ("blank", "\u200b "), ("no-text", 7))
        },
    }


def odd() -> dict[str, tuple[list[str], list[str], DossierContents]]:
    """Dossiers that verify: what a reader has to name as odd, what as missing, and the dossier.

    The words are those of this release.
    """
    unknown, buyer = "that this reader does not know", "have a DIFFERENT cbid"
    process = json.loads((ROOT.parent / "record" / "good" / "hosted" / "input.json").read_bytes())
    in_session = process["process"]["verification"]
    ack = acknowledgment("hosted").named(**NAMED)
    check = verification(20).changed(id=in_session).named(**NAMED)
    other_buyer = verification(20, OTHER_CBID).named(**NAMED)
    version = made(
        "notice_event",
        6,
        event="reviewed",
        notice_id="ab1263",
        notice_version="zz",
        notice_digest=sha256(NOTICE).hexdigest(),
    )
    late = CLEARED.changed(at="2026-11-20T23:31:01.123Z")
    more = CLEARED.changed(more=1, obligations=[{"anything": {"at": "all"}}])
    shown = made(
        "fulfilment",
        22,
        {"carrier": None, "tracking_number": None, "depot": "Reno"},
        **{
            name: FULFILLED.members[name]
            for name in ("account", "clearance_id", "adult_signature_obtained")
        },
        shipped_at=None,
        delivered_at=None,
    ).named(**NAMED)
    refused = CLEARED.changed(cleared=False)
    refused = replace(refused, members={**refused.members, "expires_at": None})
    was = "by the vendor's reports the order was"
    decided = f"before the decision on it, at {AT.format(1)}"
    shipped = "before it was shipped, at 2025-01-01T00:00:00Z"
    confirmed = "; the vendor confirmed it"
    long_name, ended = "\u202ex\n" * 30, "is exempt by a licence that had ended before the decision"
    in_person = "is about goods that are sold in person only"
    reported = "is a report on an order that was refused"
    barrels = clearance(
        21,
        ACK.id,
        None,
        OTHER_CBID,
        ["accessory", "barrel"],
        cleared=False,
        reasons=[*REASONS],
        expires_at=None,
    ).named(**NAMED)
    minutes = f"{120 * 60_000 + 1_000} ms from the time in its identifier"

    def instead(old: Made, new: Made) -> DossierContents:
        return dossier(*(new if one is old else one for one in ORDER))

    return {
        "other-check-than-named": (
            [f"at of {in_session} is {AT.format(0)}, 221795 ms from the time in its identifier"],
            [f"the identity check {CHECK.id}, on which the clearance relied: another one is here"],
            dossier(
                OPERATOR,
                VENDOR,
                PUBLISHED,
                check,
                ack,
                clearance(21, ack.id, CHECK.id).named(**NAMED),
            ),
        ),
        "check-of-other-buyer": (
            [f"{CHECK.id} and {one} {buyer}" for one in (CLEARED.id, ACK.id)],
            [],
            instead(CHECK, other_buyer),
        ),
        "review-of-other-version": (
            [f"{version.id} names the notice ab1263 zz, and {ACK.id} ab1263 2026-01-01-incomplete"],
            [],
            instead(REVIEWED, version),
        ),
        "decided-elsewhen": (
            [f"at of {CLEARED.id} is 2026-11-20T23:31:01.123Z, {minutes}"],
            [],
            instead(CLEARED, late),
        ),
        "unknown-member": (
            [f"{CLEARED.id} has a member {unknown}: more"],
            [],
            instead(CLEARED, more),
        ),
        "unknown-disclosure": (
            [f"{FULFILLED.id} has a disclosure {unknown}: depot"],
            [],
            instead(FULFILLED, shown),
        ),
        "shipped-too-early": (
            [f"{was} shipped at 2026-11-20T21:26:00Z, {decided} (rule 5)"],
            [],
            instead(FULFILLED, FULFILLED.changed(shipped_at="2026-11-20T21:26:00Z")),
        ),
        "shipped-within-five-minutes": (
            [],
            [],
            instead(FULFILLED, FULFILLED.changed(shipped_at="2026-11-20T21:26:02Z")),
        ),
        "order-of-events-confirmed": (
            [
                f"{was} shipped at 2025-01-01T00:00:00Z, {decided}{confirmed} (rule 5)",
                f"{was} delivered at 2024-01-01T00:00:00Z, {decided}{confirmed} (rule 5)",
                f"{was} delivered at 2024-01-01T00:00:00Z, {shipped}{confirmed} (rule 6)",
            ],
            [],
            instead(
                FULFILLED,
                FULFILLED.changed(
                    shipped_at="2025-01-01T00:00:00Z",
                    delivered_at="2024-01-01T00:00:00Z",
                    order_of_events_confirmed=True,
                ),
            ),
        ),
        "refused-without-reason": (
            [f"{CLEARED.id} is refused, and gives no reason", f"{FULFILLED.id} {reported}"],
            [],
            instead(CLEARED, refused),
        ),
        "exempt-by-ended-licence": (
            [f"{CLEARED.id} {ended}"],
            [],
            exempt_order(exempt("2026-11-19", exempt_from=[WAIVED])),
        ),
        "exempt-on-the-last-day": (
            [],
            [],
            exempt_order(exempt("2026-11-20", exempt_from=[WAIVED])),
        ),
        "exempt-by-the-test-clock": (
            [f"{CLEARED.id} {ended}"],
            [],
            exempt_order(
                exempt(
                    exempt_from=[WAIVED],
                    test_clock="2028-01-01T00:00:00.000Z",
                    expires_at="2028-01-02T00:00:00Z",
                )
            ),
        ),
        "exempt-and-sold-in-person": (
            [f"{CLEARED.id} {in_person}"],
            [],
            exempt_order(exempt(goods="barrel", exempt_from=[WAIVED])),
        ),
        "overridden-and-sold-in-person": (
            [f"{barrels.id} {in_person}"],
            [],
            dossier(*PARTIES, ACK, barrels, *overridden(barrels, 1)),
        ),
        "refused-and-sold-in-person": ([], [], dossier(*PARTIES, ACK, barrels)),
        "overridden-and-reported": (
            [f"{FULFILLED.id} {reported}"],
            [],
            dossier(*PARTIES, ACK, REFUSED, FULFILLED, *overridden(REFUSED, 1)),
        ),
        "limits-of-the-writer": ([], [], instead(CLEARED, named_at_length(long_name))),
        **out_of_order(),
    }


def named_at_length(name: str) -> Made:
    """The clearance with an order reference that no service takes."""
    own = {n: v for n, v in CLEARED.members.items() if n not in {"nonce", "_sd", "_sd_alg"}}
    fields = {"cbid": CBID, "session_id": SESSION, "order_reference": name}
    shipping = {"zip": "not one", "address": None, "product_class": ""}
    return made("clearance", 21, fields | {"verification": CHECK.id, "shipping": shipping}, **own)


def at_time(record: Made, at: str) -> Made:
    """The record as it is written at another time, which its identifier has too."""
    since = datetime.fromisoformat(at) - datetime.fromisoformat("1970-01-01T00:00:00Z")
    number = (since // timedelta(milliseconds=1) << 80) + (7 << 76) + (2 << 62)
    number += int(record.id[-2:])  # those of the same time differ
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    text = "".join(digits[number >> 5 * place & 31] for place in reversed(range(26)))
    return record.changed(at=at, id=record.id[:4] + text)


def hosted_as(
    lines: Mapping[int, Mapping[str, Json]],
    initials: Sequence[str] = ("JD", "JD", "JD", "J.D."),
    **process: Json,
) -> list[Made]:
    """The order of `hosted-adopted`, with other members in its process and some of its lines."""
    kept = ROOT.parent / "record" / "good" / "hosted-adopted" / "input.json"
    own = json.loads(kept.read_bytes())["process"] | process
    own["lines"] = [line | lines.get(n, {}) for n, line in enumerate(own["lines"], 1)]
    salts = [b64url(bytes([n]) * 16) for n in (90, 91)]
    fields = (("initials_per_line", [*initials]), ("process", own))
    plain, digests = disclose([(salt, *one) for salt, one in zip(salts, fields, strict=True)])
    encoded = b64url_each(plain)
    operator, vendor, published, check, ack, cleared = hosted("hosted-adopted")
    shown = {name: text for (name, _), text in zip(fields, encoded, strict=True)}
    new = replace(ack.changed(_sd=sorted(digests)), disclosures=shown)
    in_time = check.changed(at="2026-11-20T21:27:18.328Z")  # that of its identifier
    return [operator, vendor, published, in_time, new, cleared]


def out_of_order() -> dict[str, tuple[list[str], list[str], DossierContents]]:
    """Dossiers that break a rule of the timeline (section 17.1), and others that just do not."""
    accepted, decided = f"at {AT.format(0)}", f"at {AT.format(1)}"
    before, after = "2026-11-20T21:20:00.000Z", "2026-11-20T22:40:00.000Z"
    minute = "2026-11-20T21:30:00.500Z"  # less than one before the initials

    def events(*found: tuple[str, str]) -> DossierContents:
        more = [at_time(notice_event(60 + n, what), at) for n, (what, at) in enumerate(found)]
        return dossier(*PARTIES, *more, CHECK, ACK, CLEARED, FULFILLED)

    def notice_from(day: str, **members: Json) -> DossierContents:
        notice = canonical_json({**json.loads(NOTICE), "effective_from": day})
        ack = ACK.changed(notice_digest=sha256(notice).hexdigest(), **members)
        return dossier(OPERATOR, VENDOR, PROCESS, CHECK, ack, CLEARED, FULFILLED, notice=notice)

    def reported(*reports: Mapping[str, Json], signature: bool = False) -> DossierContents:
        duty: list[Json] = [{"type": "adult_signature"}] * signature
        made_ = [fulfilment(70 + n, CLEARED.id).named(**NAMED) for n in range(len(reports))]
        nothing = dict.fromkeys(("shipped_at", "delivered_at", "adult_signature_obtained"))
        own = [
            replace(report, members={**report.members, **nothing, **said})
            for report, said in zip(made_, reports, strict=True)
        ]
        return dossier(*PARTIES, CHECK, ACK, CLEARED.changed(obligations=duty), *own)

    def decided_at(at: str, check: Made = CHECK) -> DossierContents:
        cleared = at_time(clearance(21, ACK.id, check.id), at).named(**NAMED)
        return dossier(*PARTIES, check, ACK, cleared)

    def the(what: str, at: str, than: str, then: str, rule: int) -> list[str]:
        return [f"{what} at {at}, before {than}, {then} (rule {rule})"]

    def initials(of: str, how: str = "were received") -> str:
        return f"initials for {of} {how}"

    initialed, was = "the initials were accepted", "by the vendor's reports the order was"
    taken, shown = "were taken from the first line", "the service served that"
    first, early = "2026-11-20T21:28:59.731Z", "2026-11-20T21:20:00.000Z"
    shipped, delivered = "2026-11-21T16:05:00Z", "2026-11-22T16:05:00Z"
    unsigned = "a report of the signature of an adult, which the decision requires"
    unsent = ["the time of the shipment", "a report of the delivery"]
    late_check = at_time(verification(20), after).named(**NAMED)
    pressed = "at 2026-11-20T21:29:06.410Z, which has others"
    without = "without the signature of an adult, which the decision on it requires"
    one, other, third = (f"ful_01m7xdxbmvex7t29vh2x05yy{n}" for n in (70, 71, 69))
    stopped, withdrawn = "the notice was stopped by a court", "the notice was withdrawn"
    other_words = hosted_as(
        {2: {"method": "signed in ink"}}, surface="attested", binding="notarised"
    )
    of_process = f"{other_words[4].id} has a word that this reader does not know: process."
    parts: dict[str, tuple[list[str], list[str], DossierContents]] = {
        "notice-not-yet-in-force": (
            [f"{initialed} {accepted}, before the notice came into force, at 2026-12-01 (rule 1)"],
            [],
            notice_from("2026-12-01"),
        ),
        "notice-in-force-somewhere": ([], [], notice_from("2026-11-21")),
        "notice-in-force-by-test-clock": (
            [],
            [],
            notice_from("2026-12-01", test_clock="2026-12-02T00:00:00.000Z"),
        ),
        "notice-withdrawn": (
            the(withdrawn, before, initialed, accepted, 1),
            [],
            events(("withdrawn", before)),
        ),
        "notice-withdrawn-within-a-minute": ([], [], events(("withdrawn", minute))),
        "notice-withdrawn-after": ([], [], events(("withdrawn", after))),
        "notice-enjoined": (
            the(stopped, before, initialed, accepted, 1),
            [],
            events(("enjoined", before)),
        ),
        "notice-reinstated": ([], [], events(("enjoined", before), ("reinstated", minute))),
        "notice-reinstated-after": (
            the(stopped, before, initialed, accepted, 1),
            [],
            events(("enjoined", before), ("reinstated", after)),
        ),
        "notice-withdrawn-and-reinstated": (
            the(withdrawn, before, initialed, accepted, 1),
            [],
            events(("withdrawn", before), ("reinstated", minute)),
        ),
        "served-after-initials": (
            the(initials("line 1"), first, shown, "at 2026-11-20T21:30:59.000Z", 2),
            [],
            dossier(*hosted_as({1: {"shown_at": "2026-11-20T21:30:59.000Z"}})),
        ),
        "served-within-a-minute": (
            [],
            [],
            dossier(*hosted_as({1: {"shown_at": "2026-11-20T21:29:59.000Z"}})),
        ),
        "changed-before-initials": (
            the(
                f"other {initials('line 4')}",
                early,
                "the first ones were received",
                "at 2026-11-20T21:29:17.666Z",
                2,
            ),
            [],
            dossier(*hosted_as({4: {"changed_at": early}})),
        ),
        "first-line-adopted": (
            [f"initials for the first line were taken from the line itself at {first} (rule 3)"],
            [],
            dossier(*hosted_as({1: {"method": "adopted"}})),
        ),
        "adopted-before-the-first": (
            the(
                initials("lines 2 and 3", taken),
                early,
                "the first ones were received",
                f"at {first}",
                3,
            ),
            [],
            dossier(
                *hosted_as(
                    {
                        n: {"shown_at": early, "initialed_at": early, "changed_at": None}
                        for n in (2, 3)
                    }
                )
            ),
        ),
        "adopted-others": (
            [f"{initials('line 2', taken)} {pressed}, received at {first} (rule 3)"],
            [],
            dossier(*hosted_as({}, initials=("JD", "XX", "JD", "J.D."))),
        ),
        "adopted-and-the-first-changed-later": (
            [],
            [],
            dossier(
                *hosted_as(
                    {1: {"changed_at": "2026-11-20T21:30:13.000Z", "changes": 1}},
                    initials=("J.D.", "JD", "JD", "J.D."),
                )
            ),
        ),
        "decided-before-initials": (
            [
                *the("the order was cleared", before, initialed, accepted, 4),
                *the(
                    "the order was cleared",
                    before,
                    "the identity check that the decision relied on",
                    accepted,
                    4,
                ),
            ],
            ["a report of fulfilment"],
            decided_at(before),
        ),
        "decided-before-the-check": (
            the(
                "the order was cleared",
                AT.format(1),
                "the identity check that the decision relied on",
                f"at {after}",
                4,
            ),
            [],
            decided_at(AT.format(1), late_check),
        ),
        "overridden-before-refused": (
            the("the refusal was manually overridden", early, "the decision on it", decided, 4),
            [],
            dossier(*PARTIES, ACK, REFUSED, at_time(overridden(REFUSED, 1)[0], early)),
        ),
        "check-of-version-1-after-the-decision": (
            [],
            [],
            dossier(*(at_time(r, after) if r.id == CHECK_1.id else r for r in version_1())),
        ),
        "delivered-before-shipped": (
            the(f"{was} delivered", shipped, "it was shipped", f"at {delivered}", 6),
            [],
            reported({"shipped_at": delivered, "delivered_at": shipped}),
        ),
        "delivered-without-signature": (
            [f"{was} delivered at {delivered}, {without}, {decided} (rule 7)"],
            [unsigned],
            reported(
                {"shipped_at": shipped},
                {"delivered_at": delivered, "adult_signature_obtained": False},
                signature=True,
            ),
        ),
        "delivered-and-signed-later": (
            [],
            [],
            reported(
                {"shipped_at": shipped, "delivered_at": delivered},
                {"adult_signature_obtained": False},
                {"adult_signature_obtained": True},
                signature=True,
            ),
        ),
        "shipped-not-signed-yet": (
            [],
            [unsigned, "a report of the delivery"],
            reported({"shipped_at": shipped}, signature=True),
        ),
        "no-signature-required": (
            [],
            [],
            reported({"shipped_at": shipped, "delivered_at": delivered}),
        ),
        "signature-refused": ([], unsent, reported({"adult_signature_obtained": False})),
        "report-of-nothing": ([], unsent, reported({}, {})),
        "report-corrected": (
            [],
            ["a report of the delivery"],
            reported(
                {"shipped_at": "2024-01-01T00:00:00Z"},
                {"shipped_at": shipped, "corrects": one},
            ),
        ),
        "report-corrected-by-an-earlier-one": (
            the(f"{was} shipped", "2024-01-01T00:00:00Z", "the decision on it", decided, 5),
            [],
            reported(
                {"shipped_at": shipped, "corrects": other},
                {"shipped_at": "2024-01-01T00:00:00Z"},
            ),
        ),
        "report-corrected-is-not-here": (
            [],
            [f"the report {third}, which {one} corrects"],
            reported({"shipped_at": shipped, "corrects": third}),
        ),
        "paid-not-shipped-yet": ([], ["a report of fulfilment"], reported({"paid_at": shipped})),
        "paid-and-shipped": (
            [],
            [],
            reported(
                {"paid_at": early[:-5] + "Z"}, {"shipped_at": shipped, "delivered_at": delivered}
            ),
        ),
        "payment-corrected": (
            [],
            ["a report of the delivery"],
            reported({"paid_at": shipped}, {"shipped_at": shipped, "corrects": one}),
        ),
        "unknown-words": (
            [
                f"{of_process}binding \u201cnotarised\u201d",
                f"{of_process}lines.method \u201csigned in ink\u201d",
                f"{of_process}surface \u201cattested\u201d",
            ],
            [],
            dossier(*other_words),
        ),
    }
    return parts


CHECK_1 = verification(20)
SAME_BUYER = verification(33).named(**NAMED)


def broken_records() -> dict[str, tuple[str, DossierContents]]:
    """Records that the log holds, and that no dossier has."""

    def sealed(record: Made, without: Made | None = None) -> DossierContents:
        kept = [one for one in ORDER if one is not without]
        return dossier(*kept, record)

    rotation = made("key_rotation", 50, log=LOG.ORIGIN)
    [override] = overridden(REFUSED, 1)
    of_clearance = ("ack_id", "cleared", "reasons", "obligations", "expires_at")
    granted = {name: CLEARED.members[name] for name in of_clearance}
    good_one = dossier(*ORDER)
    by_id = dict(good_one.records)
    return {
        "key-rotation": ("a record of a type that no dossier has", sealed(rotation)),
        "override-as-clearance": (
            "an override that calls itself a clearance",
            dossier(*PARTIES, ACK, override.changed(**granted, type="clearance")),
        ),
        "override-by-three": (
            "an override by three people",
            dossier(*PARTIES, ACK, REFUSED, override.changed(people=3)),
        ),
        "mode-other": (
            "a report of mode live in a test log",
            sealed(FULFILLED.changed(mode="live"), FULFILLED),
        ),
        "no-sd-alg": ("the check has no `_sd_alg`", sealed(CHECK.changed(_sd_alg=None), CHECK)),
        "version-3": ("a record of a version to come", sealed(FULFILLED.changed(v=3), FULFILLED)),
        "other-prefix": (
            "a check whose identifier begins like that of an operator",
            sealed(CHECK.changed(id="rec_01m7xdxbmvex7t29vh2x05yy51"), CHECK),
        ),
        "clearance-lacks-decision": (
            "the record of the clearance has no `cleared`",
            sealed(CLEARED.changed(cleared=None), CLEARED),
        ),
        "clearance-decision-no-boolean": (
            "`cleared` of the clearance is 1",
            sealed(CLEARED.changed(cleared=1), CLEARED),
        ),
        "exempt-from-no-notice": (
            "`exempt_from` names no notice",
            exempt_order(exempt(exempt_from=[{**WAIVED, "notice_id": None}])),
        ),
        **{
            f"exempt-from-{name}": (
                f"`{name}` of the notice in `exempt_from` is {value!r}",
                exempt_order(exempt(exempt_from=[waived(**{name: value})])),
            )
            for name, value in (("required", "required"), ("version", ""), ("notice_id", " "))
        },
        "exempt-by-a-blank-source": (
            "the exemption in `exempt_from` has a source that is blank",
            exempt_order(exempt(exempt_from=[waived({"source": "\u00a0"})])),
        ),
        "exempt-by-no-source": (
            "the exemption in `exempt_from` has no source",
            exempt_order(
                exempt(exempt_from=[{**WAIVED, "exemption": {"kind": "licensed_dealer"}}])
            ),
        ),
        "fulfilment-without-clearance": (
            "the report has no `clearance_id`",
            sealed(FULFILLED.changed(clearance_id=None), FULFILLED),
        ),
        "erased-no-array": (
            "`erased` of an erasure is a string",
            sealed(erasure(52).changed(erased=ACK.id)),
        ),
        "time-malformed": (
            "`at` of the check has no milliseconds",
            sealed(CHECK.changed(at="2026-11-20T21:31:00Z"), CHECK),
        ),
        "operator-record-missing": (
            "version 2 without `operator_record`",
            sealed(CLEARED.changed(operator_record=None), CLEARED),
        ),
        "operator-record-number": (
            "`operator_record` is a number",
            sealed(CLEARED.changed(operator_record=7), CLEARED),
        ),
        "capture-version-text": (
            "`version` of the capture process is a string",
            sealed(PROCESS.changed(version="1"), PROCESS),
        ),
        **{
            f"verification-{name}": (
                f"`{name}` of the check is not of its type",
                sealed(CHECK.changed(**{name: value}), CHECK),
            )
            for name, value in (
                ("binding", ["passkey"]),
                ("endpoint", 443),
                ("override", {"zip": True}),
                ("test_helper", "yes"),
                ("test_clock", 0),
            )
        },
        "time-february": (
            "`at` of the check is a 30th of February",
            sealed(CHECK.changed(at="2026-02-30T21:31:00.123Z"), CHECK),
        ),
        "time-second-60": (
            "`at` of the clearance has a second 60",
            sealed(CLEARED.changed(at="2026-06-30T23:59:60.000Z"), CLEARED),
        ),
        "expires-at-month-13": (
            "`expires_at` has a month 13",
            sealed(CLEARED.changed(expires_at="2026-13-01T00:00:00Z"), CLEARED),
        ),
        "order-confirmed-in-words": (
            "`order_of_events_confirmed` is no boolean",
            sealed(FULFILLED.changed(order_of_events_confirmed="yes"), FULFILLED),
        ),
        "shipped-at-words": (
            "`shipped_at` is no time",
            sealed(FULFILLED.changed(shipped_at="yesterday"), FULFILLED),
        ),
        "obligations-missing": (
            "the clearance has no `obligations`",
            sealed(CLEARED.changed(obligations=None), CLEARED),
        ),
        "types-out-of-order": (
            "the clearance stands before the acknowledgment",
            replace(good_one, records={id_: by_id[id_] for id_ in sorted(by_id, reverse=True)}),
        ),
        "indexes-out-of-order": (
            "the later event of the notice stands first",
            replace(
                good_one,
                records={
                    id_: by_id[id_]
                    for id_ in [*list(by_id)[:3], REVIEWED.id, PUBLISHED.id, *list(by_id)[5:]]
                },
            ),
        ),
        "other-file": (
            "the files of the check have the identifier of another",
            replace(
                good_one,
                records={
                    (OTHER_CHECK.id if id_ == CHECK.id else id_): record
                    for id_, record in by_id.items()
                },
            ),
        ),
    }


def broken_fields() -> dict[str, tuple[str, DossierContents]]:
    """Disclosures of wrong types, which the records bind."""

    def showing(record: Made, personal: Mapping[str, object], field: str) -> DossierContents:
        number = int(record.id[-2:])
        own = {n: v for n, v in record.members.items() if n not in {"nonce", "_sd", "_sd_alg"}}
        new = made(str(record.members["type"]), number, personal, **own).showing(field)
        return dossier(*(new if one is record else one for one in ORDER))

    order: dict[str, object] = {
        "cbid": CBID,
        "session_id": SESSION,
        "shipping": {"zip": "94103", "address": None, "product_class": "long_gun"},
        "verification": CHECK.id,
    }
    wrong: dict[str, tuple[str, object]] = {
        "clearance-cbid": ("cbid", None),
        "clearance-session-id": ("session_id", 7),
        "clearance-verification": ("verification", [CHECK.id]),
        "clearance-shipping": ("shipping", "94103"),
    }
    found = {
        name: (
            f"`{field}` of the clearance is not of its type",
            showing(CLEARED, {**order, field: value}, field),
        )
        for name, (field, value) in wrong.items()
    }
    cbid: dict[str, object] = {"cbid": 7}
    result: dict[str, object] = {"cbid": CBID, "result": {"status": "verified"}}
    return {
        **found,
        "override-reason": (
            "`reason` of an override is blank",
            dossier(
                *PARTIES,
                ACK,
                REFUSED,
                override_by(24, REFUSED.id, 0, KEYS, *REASONS, why=" ").named(**NAMED),
            ),
        ),
        "check-cbid": ("`cbid` of the check is a number", showing(CHECK, cbid, "cbid")),
        "check-result": ("`result` of the check lacks `reasons`", showing(CHECK, result, "result")),
    }


def with_files(contents: DossierContents, change: Callable[[dict[str, bytes]], object]) -> bytes:
    """The dossier with its files changed, and SHA256SUMS of what they are now."""
    files = read_container(write_dossier(contents))
    files.pop(SUMS)
    change(files)
    return write_container({**files, SUMS: sums(files)})


def _renamed(files: dict[str, bytes], start: str, new: str) -> None:
    """Gives the files of a record another name."""
    names = {n: f"records/{new}{n[13:]}" if n.startswith(start) else n for n in files}
    kept = {names[n]: data for n, data in files.items()}
    files.clear()
    files |= kept


def _moved(files: dict[str, bytes], name: str) -> None:
    """Moves a file to the end."""
    files[name] = files.pop(name)


def _two_in_one(files: dict[str, bytes]) -> None:
    """Puts one file in the place of both readers."""
    both = {n: d for n, d in files.items() if n != "verify.html"}
    files.clear()
    files |= {("verify.py\nverify.html" if n == "verify.py" else n): d for n, d in both.items()}


def _replaced(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], object]:
    def replace_(files: dict[str, bytes]) -> None:
        assert old in files[name]  # noqa: S101 - or nothing is broken
        files[name] = files[name].replace(old, new, 1)

    return replace_


def broken_files() -> dict[str, tuple[str, str, bytes]]:
    """What was changed, the step that has to fail, and the file."""
    plain = dossier(*ORDER)
    written = write_dossier(plain)
    ack, check = (f"records/{record.id}" for record in (ACK, CHECK))
    proof = f"{ack}.tlog-proof"

    def container(
        what: str, change: Callable[[dict[str, bytes]], object]
    ) -> tuple[str, str, bytes]:
        return what, "container", with_files(plain, change)

    def cosigned_again(files: dict[str, bytes]) -> None:
        files[proof] += files[proof][files[proof].rindex(b"\n\n") + 2 :].splitlines(keepends=True)[
            -1
        ]

    def uncosigned(files: dict[str, bytes]) -> None:
        line = plain.records[ACK.id].proof.splitlines(keepends=True)[-1]
        for name, data in files.items():
            files[name] = data.removesuffix(line)

    def everywhere(old: bytes, new: bytes) -> Callable[[dict[str, bytes]], object]:
        def change(files: dict[str, bytes]) -> None:
            for name, data in files.items():
                files[name] = data.replace(old, new) if name.endswith(".tlog-proof") else data

        return change

    at = parse_proof(plain.records[ACK.id].proof).index
    path = plain.records[ACK.id].proof.splitlines()[3]
    others = dossier(*ORDER, *OTHERS, of=ORDER)
    other_notice = (ROOT.parent / "record" / "good" / "another-notice" / "notice.json").read_bytes()
    stamped = good()["stamped"]
    overriding, refusal = good()["overridden"], f"records/{REFUSED.id}.json"
    return {
        "override-forged": (
            "the refusal that was overridden says that it cleared the order",
            "record",
            with_files(overriding, _replaced(refusal, b'"cleared":false', b'"cleared":true')),
        ),
        "cut": ("the last byte is missing", "container", written[:-1]),
        "longer": ("a newline after the end", "container", written + b"\n"),
        "no-notice": container("notice.json is missing", lambda f: f.pop("notice.json")),
        "notice-alone": (
            "notice.json without an acknowledgment",
            "container",
            with_files(
                dossier(*ORDER, of=[CHECK, CLEARED]),
                lambda f: [f.update({"notice.json": NOTICE}), *(_moved(f, name) for name in TOOLS)],
            ),
        ),
        "no-proof": container("a record without its proof", lambda f: f.pop(proof)),
        "no-disclosures": container(
            "a record without its disclosures", lambda f: f.pop(f"{ack}.disclosures.json")
        ),
        "identifier-above-7": container(
            "an identifier of more than 128 bits", lambda f: _renamed(f, f"{check}.", "ver_8")
        ),
        "no-pdf": container("dossier.pdf is missing", lambda f: f.pop("dossier.pdf")),
        "manifest": container(
            "a file that says more", lambda f: f.update({"manifest.json": b"{}"})
        ),
        "other-name": container(
            "a file in records/ with another ending",
            lambda f: f.update({f"{ack}.txt": b""}),
        ),
        "name-with-newline": container("one file, whose name reads like those of two", _two_in_one),
        "files-out-of-order": container(
            "policy.txt stands at the end", lambda f: _moved(f, "policy.txt")
        ),
        "disclosures-spaced": container(
            "white space in a disclosures.json",
            lambda f: f.update({f"{ack}.disclosures.json": b"[ ]"}),
        ),
        "checkpoints-differ": container(
            "one proof has a cosignature twice, the others once", cosigned_again
        ),
        "policy-no-newline": container(
            "policy.txt does not end in a newline",
            lambda f: f.update({"policy.txt": f["policy.txt"][:-1]}),
        ),
        "stamp-name": (
            "a time-stamp with a space in its name",
            "container",
            write_dossier(replace(stamped, timestamps={"timestamps/a b.tsr": b""})),
        ),
        "checkpoint-one-bit": (
            "the size in every checkpoint is another",
            "signature",
            with_files(plain, everywhere(b"\n12\n", b"\n13\n")),
        ),
        "policy-other": (
            "policy.txt has another key of the log",
            "signature",
            write_dossier(replace(plain, policy=LOG.policy(LOG.OTHER_SEED))),
        ),
        "not-cosigned": ("no witness cosigned", "quorum", with_files(plain, uncosigned)),
        "record-other": (
            "the record beside a proof is another",
            "record",
            with_files(plain, _replaced(f"{ack}.json", b"21:31:00", b"21:31:01")),
        ),
        "index-other": (
            "a proof of another place",
            "inclusion",
            with_files(
                plain, _replaced(proof, f"index {at}\n".encode(), f"index {at + 1}\n".encode())
            ),
        ),
        "path-cut": (
            "a path without its first hash",
            "inclusion",
            with_files(plain, _replaced(proof, path + b"\n", b"")),
        ),
        "record-not-sealed": (
            "the record, also in its proof, is not the one in the log",
            "inclusion",
            write_dossier(_resealed(plain, CHECK, CHECK.changed(provider="other"))),
        ),
        "other-log": (
            "a proof from another log under the checkpoint of this one",
            "inclusion",
            write_dossier(_proof_of(plain, others, FULFILLED)),
        ),
        "disclosures-of-other": (
            "the disclosures of the check beside the acknowledgment",
            "disclosures",
            with_files(
                plain,
                lambda f: f.update({f"{ack}.disclosures.json": f[f"{check}.disclosures.json"]}),
            ),
        ),
        "disclosure-changed": (
            "another ZIP code",
            "disclosures",
            write_dossier(
                dossier(*ORDER, of=[*(r for r in ORDER if r is not CLEARED), _moved_house()])
            ),
        ),
        "disclosure-twice": (
            "a field is shown twice",
            "disclosures",
            write_dossier(_shown_twice(plain)),
        ),
        "notice-other": (
            "another notice",
            "notice",
            write_dossier(replace(plain, notice=other_notice)),
        ),
        "stamp-other": (
            "a time-stamp of something else",
            "timestamps",
            write_dossier(replace(stamped, timestamps=stamps("sha256", "other"))),
        ),
        "stamp-none": (
            "a time-stamp that is none",
            "timestamps",
            write_dossier(replace(stamped, timestamps={"timestamps/1.tsr": b"0"})),
        ),
        "sums-other": (
            "verify.py is not the listed one",
            "files",
            write_container({**read_container(written), "verify.py": b"# another stand-in\n"}),
        ),
        "pdf-other": (
            "dossier.pdf is not the listed one",
            "files",
            write_container({**read_container(written), "dossier.pdf": b"%PDF"}),
        ),
        "readme-other": (
            "README.txt says something else",
            "files",
            write_dossier(replace(plain, readme=b"Trust me.\n")),
        ),
    }


TOOLS = ("policy.txt", "dossier.pdf", "verify.py", "verify.html", "README.txt")


def _moved_house() -> Made:
    """The clearance with a disclosure that its record does not bind."""
    plain, _ = disclose([("c2FsdA", "shipping", {"zip": "94104"})])
    [encoded] = b64url_each(plain)
    return replace(CLEARED, disclosures={**CLEARED.disclosures, "shipping": encoded})


def _resealed(contents: DossierContents, old: Made, new: Made) -> DossierContents:
    """The dossier with another record in the place of one, and in its proof."""
    record = contents.records[old.id]
    proof = format_proof(replace(parse_proof(record.proof), extra=new.body))
    records = {**contents.records, old.id: record._replace(record=new.body, proof=proof)}
    return replace(contents, records=records)


def _proof_of(contents: DossierContents, other: DossierContents, record: Made) -> DossierContents:
    """The dossier with the path of a record from another, under its own checkpoint."""
    path = parse_proof(other.records[record.id].proof)
    own = contents.records[record.id]
    checkpoint = parse_proof(own.proof).checkpoint
    moved = own._replace(proof=format_proof(replace(path, checkpoint=checkpoint)))
    return replace(contents, records={**contents.records, record.id: moved})


def _shown_twice(contents: DossierContents) -> DossierContents:
    own = contents.records[ACK.id]
    twice = own._replace(disclosures=(*own.disclosures, own.disclosures[0]))
    return replace(contents, records={**contents.records, ACK.id: twice})


def generated_files() -> dict[str, bytes]:
    """Every file that is made, by its path here."""
    files = {
        "good/policy.txt": LOG.policy(),
        "good/checkpoint": LOG.Log((*(record.body for record in ORDER), *FILLERS)).checkpoint(),
        "live/policy.txt": live_policy(),
        "live/order.zip": write_dossier(dossier(*live_order(), live=True)),
    }
    files |= {f"good/{name}.zip": write_dossier(contents) for name, contents in good().items()}
    cases = {f"{name}.zip": case for name, case in broken_files().items()}
    joins, fields = broken_joins() | contradictory(), broken_fields()
    for step, sets in (("joins", joins), ("record", broken_records()), ("disclosures", fields)):
        cases |= {f"{name}.zip": (what, step, write_dossier(c)) for name, (what, c) in sets.items()}
    files |= {f"broken/{name}": data for name, (_, _, data) in cases.items()}
    expected = {name: {"change": what, "step": step} for name, (what, step, _) in cases.items()}
    files["broken/expected.json"] = _pretty(expected)
    for name, (_, _, contents) in odd().items():
        files[f"good/{name}.zip"] = write_dossier(contents)
    named = {
        f"{name}.zip": {
            "odd": found,
            "missing": missing,
            "rules": sorted({int(n) for n in re.findall(r"\(rule (\d)\)", " ".join(found))}),
        }
        for name, (found, missing, _) in odd().items()
    }
    return {**files, "good/named.json": _pretty(named)}


def _pretty(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True).encode() + b"\n"


def main() -> None:
    """Write the files, and say how many there are."""
    files = generated_files()
    for name, data in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
