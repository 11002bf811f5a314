"""Dossiers: one form, the same bytes each time, and nothing else is read."""

import io
import json
import zipfile
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign_evidence.dossier import (
    CONTAINER_BYTES_MAX,
    GUIDE,
    SUMS,
    DossierContents,
    RecordFiles,
    read_container,
    write_dossier,
)
from countersign_evidence.errors import EvidenceError
from tests.evidence.contents import contents_of
from tests.offline import builder
from tests.support import depth

OTHER = "clr_01m7xdxbmvex7t29vh2x05yyyq"
CONTENTS = DossierContents(
    records={
        builder.ID: RecordFiles(b"{}", ("a", "caf\u00e9"), b"proof"),
        OTHER: RecordFiles(b"[]", (), b"another"),
    },
    notice=b"notice",
    policy=b"policy",
    timestamps={"timestamps/b.tsr": b"2", "timestamps/a.tsr": b"1"},
    pdf=b"%PDF",
    verify_py=b"# py",
    verify_html=b"<html>",
)


def test_a_dossier_is_the_same_bytes_each_time() -> None:
    """Its bytes are also those of the format, computed independently."""
    dossier = write_dossier(CONTENTS)
    files = {
        builder.RECORD: b"{}",
        builder.DISCLOSURES: '["a","caf\u00e9"]'.encode(),
        builder.PROOF: b"proof",
        f"records/{OTHER}.json": b"[]",
        f"records/{OTHER}.disclosures.json": b"[]",
        f"records/{OTHER}.tlog-proof": b"another",
        "notice.json": b"notice",
        "policy.txt": b"policy",
        "timestamps/a.tsr": b"1",
        "timestamps/b.tsr": b"2",
        "dossier.pdf": b"%PDF",
        "verify.py": b"# py",
        "verify.html": b"<html>",
        "README.txt": GUIDE,
    }
    assert dossier == builder.zipped(builder.summed(files))
    assert dossier == write_dossier(replace(CONTENTS, timestamps=dict(CONTENTS.timestamps)))


def test_written_containers_can_be_read() -> None:
    """Time-stamps come back in the order of their names."""
    dossier = write_dossier(CONTENTS)
    contents, listed = contents_of(dossier), read_container(dossier)[SUMS]
    assert contents == CONTENTS
    assert list(contents.timestamps) == ["timestamps/a.tsr", "timestamps/b.tsr"]
    assert f"{sha256(b'notice').hexdigest()}  notice.json\n".encode() in listed


def test_ordinary_tools_read_it() -> None:
    """Python's zipfile: names, dates, rights."""
    with zipfile.ZipFile(io.BytesIO(write_dossier(CONTENTS))) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read(builder.DISCLOSURES)) == ["a", "caf\u00e9"]
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.external_attr >> 16 == 0o100644
            assert info.extra == b""
            assert info.flag_bits == 0


def test_no_optional_file_is_needed() -> None:
    """Time-stamps are the only ones."""
    contents = replace(CONTENTS, timestamps={})
    assert contents_of(write_dossier(contents)) == contents


@pytest.mark.parametrize(
    "name", ["timestamps/a", "timestamps/../x.tsr", "timestamps/a/b.tsr", "timestamps/.tsr\n"]
)
def test_a_time_stamp_has_a_plain_name(name: str) -> None:
    """No name leads out of the folder that someone unpacks into."""
    dossier = write_dossier(replace(CONTENTS, timestamps={name: b""}))
    with pytest.raises(EvidenceError):
        contents_of(dossier)


def test_a_dossier_larger_than_any_is_refused() -> None:
    """Before it is opened."""
    large = write_dossier(replace(CONTENTS, pdf=bytes(CONTAINER_BYTES_MAX)))
    with pytest.raises(EvidenceError, match="at most 16000000 bytes"):
        read_container(large)


def test_a_dossier_that_would_unpack_to_more_than_it_is_is_refused() -> None:
    """Compressed data is not read at all."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(builder.RECORD, bytes(50_000_000))
    with pytest.raises(EvidenceError):
        read_container(target.getvalue())


@settings(max_examples=depth.drawn(60))
@given(st.binary(max_size=120), st.integers(0, 4000), st.integers(0, 60))
def test_any_bytes_are_a_dossier_or_refused(data: bytes, at: int, cut: int) -> None:
    """Also inside a valid one; parsed bytes are written the same."""
    good = write_dossier(CONTENTS)
    for dossier in (data, good[:at] + data + good[at + cut :], b"PK" + data, good + data):
        try:
            contents = contents_of(dossier)
        except EvidenceError:
            continue
        assert write_dossier(contents) == dossier
