"""Records that bind or describe parties: the readers judge any change of their members alike."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from countersign_evidence.canonical import canonical_json
from countersign_evidence.offline import verify
from countersign_evidence.proof import parse_proof
from tests.offline import builder
from tests.offline.odd_words import sealed
from tests.support import depth
from tests.support.browsers import running_browser

LOG = Path(__file__).parents[2] / "spec" / "vectors" / "log"
ORIGIN = "evidence.example.com:8443/v1/log/test/2"
_JUDGE: Final = """async ([policy, ...proofs]) => {
  const found = [], bytes = text => fromLatin1(atob(text));
  for (const proof of proofs) {
    const run = await verify(bytes(proof), await readPolicy(bytes(policy)));
    found.push((run.failed ?? run.stuck)?.name ?? null);
  }
  return found;
}"""
DIGEST = "0123456789abcdef" * 4
NAMES = (
    *("v", "type", "capture", "operator_record", "account_record", "capture_process"),
    *("previous", "version", "statement", "name", "account", "legal_name", "contact"),
)
VALUES: st.SearchStrategy[object] = st.sampled_from([
    *(None, True, False, 0, 1, 2, 3, -1, "", "x", [], {}, ["x"]),
    *(DIGEST, DIGEST.upper(), DIGEST + "\n", DIGEST[:-1], DIGEST + "0", "\u0660" * 64),
    *("vendor_api", "hosted", "acknowledgment", "operator", "clearance", "erasure"),
])  # fmt: skip


def good_records() -> list[dict[str, Any]]:
    """The good records of both versions."""
    names = [*LOG.glob("good/*.tlog-proof")]
    bodies = [parse_proof(path.read_bytes()).extra for path in names]
    bodies += [
        (LOG.parent / "record" / "good" / name / "record.json").read_bytes()
        for name in ("parties", "parties-none", "parties-hosted", "hosted")
    ]
    return [json.loads(body) for body in bodies if body]


GOOD = good_records()


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """A good record with up to three of these members replaced, left out or added."""
    record = dict(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(NAMES))
        if draw(st.booleans()):
            record.pop(name, None)
        else:
            record[name] = draw(VALUES)
    return record


def refuses(record: dict[str, Any]) -> bool:
    """Whether verify.py refuses a record of a test log."""
    try:
        verify.check_record(canonical_json(record), ORIGIN)
    except verify.Bad:
        return True
    return False


@pytest.mark.long
@pytest.mark.browser
def test_the_page_agrees_about_any_record(page_file: Path) -> None:
    """It shares no code with verify.py, which the service uses."""
    records: list[dict[str, Any]] = []

    @given(changed())
    @settings(database=None, max_examples=depth.drawn(300), phases=[Phase.generate])
    def collect(record: dict[str, Any]) -> None:
        records.append({**record, "mode": "live"})

    collect()
    bodies = [canonical_json(record) for record in records]
    policy = builder.material().policy.encode()
    trusted = verify.read_policy(policy)
    proofs = [sealed(body).proof() for body in bodies]
    failed = [verify.verify_bytes(proof, trusted).failed for proof in proofs]
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.locator("#file[data-ready]").wait_for()
        found = page.evaluate(
            _JUDGE, [b64encode(policy).decode(), *(b64encode(p).decode() for p in proofs)]
        )
    ours = [one and one.name for one in failed]
    assert [(r, a, b) for r, a, b in zip(records, ours, found, strict=True) if a != b] == []
    assert {None, "record"} <= set(ours)


@pytest.mark.parametrize("type_", sorted(verify.RECORDS))
def test_only_records_that_bind_parties_have_a_version_2(type_: str) -> None:
    """An old reader refuses version 2, so it is only written if it adds something."""
    found = [record for record in GOOD if record["type"] == type_ and record["v"] == 1]
    for record in found:
        twice = {**record, "v": 2, "operator_record": None, "account_record": DIGEST}
        if record.get("capture") == "vendor_api":
            twice["capture_process"] = None
        assert refuses(twice) is (type_ not in verify.WITH_PARTIES)


def test_every_record_of_version_1_is_read_as_before() -> None:
    """With members of version 2 it is a record with members that a reader does not know."""
    for record in GOOD:
        if record["v"] == 1:
            more = {**record, "operator_record": 1, "account_record": "x"}
            assert not refuses(more)
