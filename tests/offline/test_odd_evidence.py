"""Evidence that a log signed and that is still none: odd records, and odd files in a folder."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import FilePayload, expect, sync_playwright

from countersign.evidence.policy import parse_policy
from countersign.evidence.verification import verify_file
from countersign.offline import verify
from tests.conftest import find_chromium
from tests.offline import builder

POLICY = builder.material().policy.encode()


def sealed(record: bytes) -> builder.Material:
    """A bundle about these bytes, which the log signed as they are."""
    return replace(builder.material(), record=record, extra=record)


def verdicts(material: builder.Material) -> list[str | None]:
    """The step that fails, by the script and by the service."""
    bundle = material.bundle()
    failed = verify.verify_bytes(bundle).failed
    return [failed and failed.name, verify_file(bundle).name]


@pytest.mark.parametrize("name", sorted(verify.TYPES))
def test_records_of_every_known_type_are_proved_alone(name: str) -> None:
    """By script and service; only an acknowledgment can be what a bundle is about."""
    members = {**json.loads(builder.material().record), "type": name}
    material = sealed(builder.canonical(members))
    report = verify.verify_bytes(material.proof(), verify.read_policy(POLICY))
    assert report.ok, report.line()
    assert verify_file(material.proof(), parse_policy(POLICY)).ok
    assert verdicts(material) == [None if name == "acknowledgment" else "record"] * 2


@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", b"c2sp.org/tlog-proof@v1\n"]))
def test_no_bytes_make_it_crash_or_pass(noise: bytes, start: bytes) -> None:
    """Whatever a file holds, the answer is a failure with a named step."""
    failed = verify.verify_bytes(start + noise).failed
    assert failed is not None
    assert failed.name == verify_file(start + noise).name


@pytest.mark.parametrize("name", builder.summed(builder.material().files()))
def test_each_file_of_a_folder_counts(name: str, tmp_path: Path) -> None:
    """A byte more, or the file gone: both are noticed."""
    for other, data in builder.summed(builder.material().files()).items():
        (tmp_path / other).write_bytes(data)
    assert verify.verify_folder(tmp_path).ok
    path = tmp_path / name
    path.write_bytes(path.read_bytes() + b" ")
    assert not verify.verify_folder(tmp_path).ok
    path.unlink()
    assert verify.verify_folder(tmp_path).line().startswith("FAILED at step 1 (container)")


def test_a_file_with_a_tricky_name_is_told_and_not_obeyed(tmp_path: Path) -> None:
    """Things lie beside a bundle; what does not belong to it is named, in the folder below too."""
    for other, data in builder.summed(builder.material().files()).items():
        (tmp_path / other).write_bytes(data)
    (tmp_path / "annex\x1b[2J.pdf").write_bytes(b"")
    (tmp_path / "timestamps").mkdir()
    (tmp_path / "timestamps" / "why.txt").write_bytes(b"")
    report = verify.verify_folder(tmp_path)
    assert report.ok
    told = [verify.printable(line) for line in verify.explain(report)]
    assert "not looked at: annex\\x1b[2J.pdf, timestamps/why.txt" in told[0]


DEEP = b"[" * 20_000
NOT_RECORDS = [
    *(DEEP, b"{", b"[]", b"null", b'"\\ud800"', b"\xff", b'{"v":NaN}', b'{"v":1e999}', b"1" * 5000),
    *(b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", b"\xef\xbb\xbf{}", b'{"\xc3\xa9":1}'),
    b'{"_sd":[],"id":"\\ud800","mode":"live","type":"acknowledgment","v":1}',
]
WRONG_MEMBERS: list[dict[str, object]] = [
    {"v": True},
    {"v": 2},
    {"type": []},
    {"mode": ["live"]},
    {"id": 1},
    {"_sd": "x"},
    {"_sd": [1]},
    {"_sd": None},
    {"more": 2**53},
    {"more": 1.5},
]
# Strings that are no disclosures, or one written in another way than its only one.
NOT_DISCLOSURES = ["", "WyJhIiwiYiIsMV0=", "WyJh\nIiwiYiIsMV0", "WyJhIiwiYiIsMV1", "WyJhIiwyLDFd"]
NOT_NOTICES = [
    *(b"[]", b"null", b"{", b'{"bullets":{}}', b'{"bullets":[null]}'),
    *(b'{"bullets":[{"id":"a","text":5}]}', b'{"bullets":[{"id":"a","text":"\\ud800"}]}'),
]


def with_members(changes: dict[str, object]) -> builder.Material:
    return sealed(builder.canonical({**json.loads(builder.material().record), **changes}))


def with_disclosure(encoded: str) -> builder.Material:
    digest = builder.b64url(sha256(encoded.encode()).digest())
    return replace(builder.material(_sd=[digest]), disclosures=[encoded])


def with_notice(notice: bytes) -> builder.Material:
    record = builder.material(notice_digest=sha256(notice).hexdigest(), bullets=[]).record
    return replace(sealed(record), notice=notice)


# By a name: what a log signed, and the step that refuses it; None: nothing is wrong with it.
ODD: dict[str, tuple[builder.Material, str | None]] = {
    **{f"record {n}": (sealed(data), "record") for n, data in enumerate(NOT_RECORDS)},
    **{f"members {changes}": (with_members(changes), "record") for changes in WRONG_MEMBERS},
    **{f"disclosure {e!r}": (with_disclosure(e), "disclosures") for e in NOT_DISCLOSURES},
    **{f"notice {data!r}": (with_notice(data), "notice") for data in NOT_NOTICES},
    "unknown algorithm": (with_members({"_sd_alg": "sha-512"}), "disclosures"),
    "no bullets": (with_members({"bullets": None}), "notice"),
    "largest number": (with_members({"more": 2**53 - 1}), None),
    "many characters": (with_members({"more": '\u2028\x7f\x1f\u00e9\U0001f600/"'}), None),
    "another disclosure": (with_disclosure("WyJhIiwiYiIsMV0"), None),
}


@pytest.mark.parametrize("name", ODD)
def test_script_and_service_judge_odd_evidence_alike(name: str) -> None:
    """True is not 1, nesting has an end, and there is one way to write a thing."""
    material, step = ODD[name]
    assert verdicts(material) == [step] * 2


@pytest.mark.browser
def test_the_page_judges_odd_evidence_as_the_script_does(page_file: Path) -> None:
    """All of it, one file after the other, in one page."""
    wrong = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(page_file.as_uri())
        for name, (material, step) in ODD.items():
            data = material.bundle()
            page.locator("#file[data-ready]").set_input_files(
                FilePayload(name="b.zip", mimeType="application/zip", buffer=data)
            )
            expect(page.locator("#verdict")).to_have_text(re.compile("^(OK|FAILED)"))
            told = page.locator("#verdict").inner_text()
            if not (told.startswith("OK: ") if step is None else f"({step}): " in told):
                wrong[name] = told
        browser.close()
    assert wrong == {}
