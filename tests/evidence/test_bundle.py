"""Bundles: one form, the same bytes each time, and nothing else is read."""

import io
import json
import zipfile
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign_evidence.bundle import (
    BUNDLE_BYTES_MAX,
    GUIDE,
    BundleContents,
    contents_of,
    read_container,
    write_bundle,
)
from countersign_evidence.errors import EvidenceError
from tests.offline import builder

CONTENTS = BundleContents(
    record=b"{}",
    disclosures=("a", "caf\u00e9"),
    notice=b"notice",
    proof=b"proof",
    policy=b"policy",
    timestamps={"timestamps/b.tsr": b"2", "timestamps/a.tsr": b"1"},
    certificate=b"%PDF",
    verify_py=b"# py",
    verify_html=b"<html>",
)


def test_a_bundle_is_the_same_bytes_each_time() -> None:
    """And those that the format names, made by another hand."""
    bundle = write_bundle(CONTENTS)
    files = {
        "record.json": b"{}",
        "disclosures.json": '["a","caf\u00e9"]'.encode(),
        "notice.json": b"notice",
        "proof.tlog-proof": b"proof",
        "policy.txt": b"policy",
        "timestamps/a.tsr": b"1",
        "timestamps/b.tsr": b"2",
        "certificate.pdf": b"%PDF",
        "verify.py": b"# py",
        "verify.html": b"<html>",
        "README.txt": GUIDE,
    }
    assert bundle == builder.zipped(builder.summed(files))
    assert bundle == write_bundle(replace(CONTENTS, timestamps=dict(CONTENTS.timestamps)))


def test_what_is_written_is_read() -> None:
    """Time-stamps come back in the order of their names."""
    contents, listed = contents_of(read_container(write_bundle(CONTENTS)))
    assert contents == CONTENTS
    assert list(contents.timestamps) == ["timestamps/a.tsr", "timestamps/b.tsr"]
    assert f"{sha256(b'notice').hexdigest()}  notice.json\n".encode() in listed


def test_ordinary_tools_read_it() -> None:
    """Python's zipfile: names, dates, rights."""
    with zipfile.ZipFile(io.BytesIO(write_bundle(CONTENTS))) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("disclosures.json")) == ["a", "caf\u00e9"]
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.external_attr >> 16 == 0o100644
            assert info.extra == b""
            assert info.flag_bits == 0


def test_no_optional_file_is_needed() -> None:
    """Time-stamps are the only ones."""
    contents = replace(CONTENTS, timestamps={})
    assert contents_of(read_container(write_bundle(contents)))[0] == contents


@pytest.mark.parametrize(
    "name", ["timestamps/a", "timestamps/../x.tsr", "timestamps/a/b.tsr", "timestamps/.tsr\n"]
)
def test_a_time_stamp_has_a_plain_name(name: str) -> None:
    """No name leads out of the folder that someone unpacks into."""
    files = read_container(write_bundle(replace(CONTENTS, timestamps={name: b""})))
    with pytest.raises(EvidenceError):
        contents_of(files)


def test_a_bundle_larger_than_any_is_refused() -> None:
    """Before it is looked into."""
    large = write_bundle(replace(CONTENTS, certificate=bytes(BUNDLE_BYTES_MAX)))
    with pytest.raises(EvidenceError, match="at most 16000000 bytes"):
        contents_of(read_container(large))


def test_a_bundle_that_would_unpack_to_more_than_it_is_is_refused() -> None:
    """Nothing compressed is read at all."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("record.json", bytes(50_000_000))
    with pytest.raises(EvidenceError):
        read_container(target.getvalue())


@settings(max_examples=60)
@given(st.binary(max_size=120), st.integers(0, 4000), st.integers(0, 60))
def test_any_bytes_are_a_bundle_or_refused(data: bytes, at: int, cut: int) -> None:
    """In the middle of a good one too; what is read is written the same."""
    good = write_bundle(CONTENTS)
    for bundle in (data, good[:at] + data + good[at + cut :], b"PK" + data, good + data):
        try:
            contents, _ = contents_of(read_container(bundle))
        except EvidenceError:
            continue
        assert write_bundle(contents) == bundle
