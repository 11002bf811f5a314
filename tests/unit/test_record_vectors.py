"""The vectors of the record format: made again byte for byte, and judged by a second reader."""

from __future__ import annotations

import json
import sys
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.support.every import every
from tests.unit.record_reader import digest_of, disclosed, findings, unpadded
from tests.unit.support import jcs

SPEC = Path(__file__).parents[2] / "spec"
RECORD = SPEC / "vectors" / "record"
FORMAT = (SPEC / "evidence-format.md").read_text(encoding="utf-8")
GOOD = sorted(path.parent for path in (RECORD / "good").glob("*/input.json"))
BROKEN = sorted((RECORD / "broken").glob("*.json"))
MADE_BY_HAND = {"input.json", "README.md", "blank.txt"}

good = pytest.mark.parametrize("folder", GOOD, ids=lambda folder: folder.name)


def _read(path: Path) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(path.read_bytes())


@pytest.fixture(scope="module")
def generated() -> dict[str, bytes]:
    """The present output of make_vectors.py."""
    spec = spec_from_file_location("make_vectors", SPEC / "vectors" / "make_vectors.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # A dataclass looks its module up by name while it is made.
        patch.setitem(sys.modules, "make_vectors", module)
        spec.loader.exec_module(module)
        files: dict[str, bytes] = module.generated_files()
    return files


def test_the_code_makes_every_vector_byte_for_byte(generated: dict[str, bytes]) -> None:
    """Evidence written by an older release is what this release would write."""
    kept = {
        str(path.relative_to(RECORD)): path.read_bytes()
        for path in RECORD.rglob("*")
        if path.is_file() and path.name not in MADE_BY_HAND
    }
    assert sorted(kept) == sorted(generated)
    assert [name for name in kept if kept[name] != generated[name]] == []


def test_there_are_vectors_of_both_kinds() -> None:
    """An empty folder must not pass for a green one."""
    assert {folder.name for folder in GOOD} == {
        *("full", "least", "another-notice"),
        *("hosted", "hosted-component", "hosted-adopted", "hosted-two-clients"),
        *("parties", "parties-none", "parties-hosted"),
        "order-reference",
    }
    assert len(BROKEN) >= 12


@good
def test_a_second_reader_accepts_every_good_vector(folder: Path) -> None:
    """Standard library only, written from the text of the format."""
    assert (
        findings(
            record=(folder / "record.json").read_bytes(),
            record_sha256_hex=_read(folder / "digests.json")["record_sha256_hex"],
            disclosures=_read(folder / "disclosures.json"),
            notice=(folder / "notice.json").read_bytes(),
        )
        == []
    )


@every("path", BROKEN)
def test_a_second_reader_detects_every_broken_vector(path: Path) -> None:
    """Exactly the findings that the vector names: no more, and no less."""
    case = _read(path)
    assert case["findings"]
    assert case["findings"] == findings(
        record=b64decode(case["record_base64"]),
        record_sha256_hex=case["record_sha256_hex"],
        disclosures=case["disclosures"],
        notice=b64decode(case["notice_base64"]),
    )


def test_an_omitted_disclosure_is_no_error() -> None:
    """Showing only some fields is what disclosures are for, and so is erasing all."""
    folder = RECORD / "good" / "full"
    disclosures = _read(folder / "disclosures.json")
    for count in range(len(disclosures)):
        assert (
            findings(
                record=(folder / "record.json").read_bytes(),
                record_sha256_hex=_read(folder / "digests.json")["record_sha256_hex"],
                disclosures=disclosures[:count],
                notice=(folder / "notice.json").read_bytes(),
            )
            == []
        )


@good
def test_a_second_writer_makes_the_same_bytes(folder: Path) -> None:
    """Everything in a record follows from the input by the text of the format."""
    given = _read(folder / "input.json")
    entropy = bytes.fromhex(given["entropy_hex"])
    notice = jcs(given["notice"])
    origin, clients = given["origin"], given.get("initials_from", ())
    addresses, agents = ([one[place] for one in clients] for place in (0, 1))
    personal = [
        ("initials_per_line", given["initials_per_line"]),
        ("session_id", given["session_id"]),
        ("cbid", given["cbid"]),
        (
            "ip",
            {
                "ip": origin["ip"],
                "source": origin["ip_source"],
                "peer_ip": origin["peer_ip"],
                "forwarded": origin["forwarded"],
                "truncated": origin["forwarded_truncated"],
                **({"initials_from": addresses} if {*addresses} - {origin["ip"]} else {}),
            },
        ),
        (
            "user_agent",
            {
                "user_agent": origin["user_agent"],
                "source": origin["user_agent_source"],
                "truncated": origin["user_agent_truncated"],
                **({"initials_from": agents} if {*agents} - {origin["user_agent"]} else {}),
            },
        ),
    ]
    hosted = "process" in given
    if hosted:
        personal.append(("process", given["process"]))
    if "order_reference" in given:
        personal.append(("order_reference", given["order_reference"]))
    salts = [unpadded(entropy[at : at + 16]) for at in range(24, len(entropy), 16)]
    disclosures = [
        unpadded(
            json.dumps([salt, name, value], ensure_ascii=False, separators=(",", ":")).encode()
        )
        for salt, (name, value) in zip(salts, personal, strict=True)
    ]
    milliseconds = given["time_ns"] // 1_000_000
    accepted = datetime.fromtimestamp(milliseconds // 1000, UTC)
    record = json.loads((folder / "record.json").read_bytes())
    expected = {
        "_sd": sorted(map(digest_of, disclosures)),
        "_sd_alg": "sha-256",
        "accepted_at": f"{accepted:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z",
        "account": given["account"],
        "bullets": [
            {"digest": sha256(line["text"].encode()).hexdigest(), "id": line["id"]}
            for line in given["notice"]["bullets"]
        ],
        "capture": "hosted" if hosted else "vendor_api",
        "credential": "checkout_session"
        if hosted
        else {"sk": "secret_key", "rk": "restricted_key"}[given["key_kind"]],
        "id": record["id"],
        "mode": given["mode"],
        "nonce": unpadded(entropy[8:24]),
        "notice_digest": sha256(notice).hexdigest(),
        "notice_id": given["notice"]["id"],
        "notice_version": given["notice"]["version"],
        "notice_version_source": "assumed" if given["notice_version"] is None else "asserted",
        "type": "acknowledgment",
        "v": 1,
    }
    if "bound" in given:
        bound = given["bound"]
        expected |= {"v": 2, "operator_record": bound["operator"]}
        expected |= {"account_record": bound["account"]}
        expected |= {} if hosted else {"capture_process": bound["capture_process"]}
    assert (folder / "notice.json").read_bytes() == notice
    assert _read(folder / "disclosures.json") == disclosures
    assert (folder / "record.json").read_bytes() == jcs(expected)


@good
def test_the_digests_are_given_in_the_encodings_of_the_format(folder: Path) -> None:
    """Hex where people compare, base64 where the log will carry it."""
    digest = sha256((folder / "record.json").read_bytes()).digest()
    assert _read(folder / "digests.json") == {
        "notice_sha256_hex": sha256((folder / "notice.json").read_bytes()).hexdigest(),
        "record_sha256_base64": b64encode(digest).decode(),
        "record_sha256_hex": digest.hex(),
    }


@good
def test_the_identifier_and_the_time_of_a_record_agree(folder: Path) -> None:
    """One reading of the clock: the first 48 bits of the identifier are `accepted_at`."""
    record = _read(folder / "record.json")
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    value = 0
    for character in record["id"].removeprefix("ack_"):
        value = value * 32 + alphabet.index(character)
    at = datetime.fromisoformat(record["accepted_at"])
    assert value >> 80 == round(at.timestamp() * 1000)


def test_the_worked_example_of_the_format_is_the_vector() -> None:
    """The text quotes the file exactly."""
    folder = RECORD / "good" / "full"
    disclosures = _read(folder / "disclosures.json")
    assert (folder / "record.json").read_text(encoding="utf-8") in FORMAT
    assert disclosures[0] in FORMAT
    assert digest_of(disclosures[0]) in FORMAT
    assert json.dumps(disclosed(disclosures[0]), separators=(",", ":")) in FORMAT
    for digest in _read(folder / "digests.json").values():
        assert digest in FORMAT


@good
def test_every_member_of_a_record_is_in_the_text_of_the_format(folder: Path) -> None:
    """Members, names of disclosures and members of their values."""
    names = set(_read(folder / "record.json"))
    for disclosure in _read(folder / "disclosures.json"):
        _, name, value = disclosed(disclosure)
        names |= {name} | (set(value) if isinstance(value, dict) else set())
        if name == "process":
            for one in (*value["lines"], *value["claimed"], value["viewport"] or {}):
                names |= set(one)
    assert [name for name in sorted(names) if f"`{name}`" not in FORMAT] == []
