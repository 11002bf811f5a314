"""A release's statements about itself. `make release` checks that its bytes are reproducible."""

from __future__ import annotations

import hashlib
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tools.release import LOCKS, NPM, PYTHON, ROOT, checksums, main, provenance, sbom

COMMIT = "ceecfc416e43a5bb432781cefa9ed905153cd4ac"


def test_the_parts_list_has_every_pinned_package_and_is_the_same_each_time() -> None:
    """Names as package URLs want them: in small letters, with hyphens."""
    pins = 'Jinja2==3.1.6 \\\n    --hash=sha256:00\npsycopg[binary]==3.3.9 ; os_name == "nt" \\\n'
    made = datetime(2026, 11, 23, 7, 0, tzinfo=UTC)
    listed = sbom(pins, name="countersign-service", version="1.0", made=made, commit=COMMIT)
    assert [part["purl"] for part in listed["components"]] == [
        "pkg:pypi/jinja2@3.1.6",
        "pkg:pypi/psycopg@3.3.9",
    ]
    assert listed["metadata"]["timestamp"] == "2026-11-23T07:00:00Z"
    again = sbom(pins, name="countersign-service", version="1.0", made=made, commit=COMMIT)
    assert listed == again
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    whole = sbom(text, name="countersign-service", version="1.0", made=made, commit=COMMIT)
    assert len(whole["components"]) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE))


def test_every_installation_can_request_time_stamps() -> None:
    """By `make setup`, in the image, and from a release: its parts list names the package."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert re.search(r"^rfc3161-client==", text, re.MULTILINE)
    lock = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert (
        "$(UV_COMPILE) pyproject.toml --extra timestamps --extra store --extra mail --extra oidc "
        "-o requirements.txt\n" in lock
    )
    assert "requirements.txt" in LOCKS
    image = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert "--only-binary :all: --require-hashes -r requirements.txt" in image


def test_a_folder_that_is_no_release_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as `.`, by mistake."""
    (tmp_path / "work").touch()
    monkeypatch.setattr(sys, "argv", ["release", str(tmp_path)])
    with pytest.raises(SystemExit, match="other than a release"):
        main()
    assert (tmp_path / "work").exists()


def test_every_package_has_the_licence() -> None:
    """Each is built from its folder alone, so its licence has to be there."""
    licence = (ROOT / "LICENSE").read_bytes()
    folders = {*PYTHON, NPM, "web"} - {"."}
    assert len(folders) == 8
    assert [f for f in folders if (ROOT / f / "LICENSE").read_bytes() != licence] == []


def test_the_statement_names_the_commit_and_the_digest_of_every_file(tmp_path: Path) -> None:
    """And says that it is not signed."""
    (tmp_path / "verify.py").write_bytes(b"x")
    (tmp_path / "SHA256SUMS").write_bytes(b"")
    files = checksums(tmp_path)
    assert files == {"verify.py": hashlib.sha256(b"x").hexdigest()}
    statement = provenance(files, {"requirements.txt": "00"}, COMMIT, node="v20")
    assert [(s["name"], s["digest"]["sha256"]) for s in statement["subject"]] == [*files.items()]
    built = statement["predicate"]["buildDefinition"]
    assert built["internalParameters"]["signed"] is False
    assert {"name": "source", "digest": {"gitCommit": COMMIT}} in built["resolvedDependencies"]
    assert all((ROOT / lock).is_file() for lock in LOCKS)
