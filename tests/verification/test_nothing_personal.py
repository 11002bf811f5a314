"""Personal data exists only inside the vault, not in files, tables, logs or commands."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from countersign.base.db.tables import metadata
from countersign_simulators.registry import SIMULATORS
from tests.support.privacy import personal_words
from tests.support.service import Deployment, Server
from tests.verification.conftest import MakeVendor
from tests.verification.live import LiveVendor

_HEAD = 5
"""No form of a personal string is shorter, and none of them begins alike by accident."""


def forms_of(word: str) -> dict[bytes, str]:
    """The possible forms of a personal string in a file."""
    raw = word.encode()
    forms = {raw: word, raw.hex().encode(): f"{word} in hexadecimal digits"}
    forms[word.encode("utf-16-le")] = f"{word} in UTF-16"
    forms[word.encode("utf-16-be")] = f"{word} in UTF-16"
    forms[json.dumps(word).strip('"').encode()] = f"{word} in JSON"
    for shift in range(3):
        # Without the digits at either end that depend on the neighbouring text.
        whole = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        kept = whole[-(-shift * 8 // 6) : len(whole) - (1 if (shift + len(raw)) % 3 else 0)]
        if len(kept) >= 8:
            forms[kept] = f"{word} in base64"
            forms[kept.replace(b"+", b"-").replace(b"/", b"_")] = f"{word} in base64url"
    return forms


class Search:
    """Looks for personal strings in bytes, in every form, in one pass."""

    def __init__(self, words: Iterable[str]) -> None:
        self._by_head: dict[bytes, dict[bytes, str]] = {}
        for word in words:
            for form, said in forms_of(word).items():
                self._by_head.setdefault(form[:_HEAD], {})[form] = said

    def __call__(self, content: bytes) -> set[str]:
        """What stands there."""
        heads, found = self._by_head, set()
        for place in range(len(content)):
            if (head := content[place : place + _HEAD]) in heads:
                found |= {
                    said for form, said in heads[head].items() if content.startswith(form, place)
                }
        return found

    def files(self, places: Iterable[Path]) -> list[str]:
        """The content of each file."""
        found = []
        for place in places:
            # A server writes its heads into another file, and then renames that.
            with suppress(FileNotFoundError):
                found += [f"{said} in {place.name}" for said in self(place.read_bytes())]
        return found


def test_a_personal_string_is_found_in_any_spelling() -> None:
    """The search can find something, and finds nothing where nothing is."""
    word = "Zenobélle"
    search, plain = Search([word]), word.encode()
    for written in (
        plain,
        word.encode("utf-16-le"),
        word.encode("utf-16-be"),
        plain.hex().encode(),
        json.dumps({"name": word}).encode(),
        *(base64.b64encode(b"xyz"[:n] + plain + b"xyz"[:m]) for n in range(4) for m in range(4)),
        base64.urlsafe_b64encode(b"xyz" + plain + b"\xff\xfe"),
    ):
        assert search(b"before" + written + b"after"), written
    assert not Search(["Thistlewane"])(plain)


def test_the_personal_strings_are_fit_to_search_for() -> None:
    """Each provider has its own people, and no string occurs elsewhere by chance."""
    words = personal_words()
    assert len(words) > 400
    assert min(map(len, words)) >= _HEAD
    for make in SIMULATORS.values():
        people = [session.personal for session in make(time.time).sessions if session.personal]
        assert len({personal[:2] for personal in people}) >= 3


@pytest.fixture
def somebody(vendor_with: MakeVendor) -> tuple[LiveVendor, str]:
    """Verify somebody with every provider, and leave a session undecided."""
    verified = []
    for vendor in map(vendor_with, SIMULATORS):
        verified.append((vendor, vendor.verified(vendor.part("verified", 1))))
        for part in ("pending", "underage", "other_subject"):
            vendor.verify(vendor.part(part))
        vendor.configure(credentials=vendor.playing.simulator.credentials)
    return verified[-1]


def test_no_file_of_the_deployment_holds_anything_personal(
    somebody: tuple[LiveVendor, str], deployment: Deployment, server: Server
) -> None:
    """The database, its log, the heads, and the server's log; evidence is there."""
    vendor, _ = somebody
    assert vendor.rows("verification_evidence")
    files = [place for place in deployment.data_dir.rglob("*") if place.is_file()]
    assert Search(personal_words()).files([*files, server.log]) == []


def test_no_row_of_any_table_holds_anything_personal(somebody: tuple[LiveVendor, str]) -> None:
    """On PostgreSQL the files are not ours, but the rows are."""
    vendor, _ = somebody
    search = Search(personal_words())
    for table in metadata.tables:
        for row in vendor.operator.rows(f"SELECT * FROM {table}"):  # noqa: S608 - our own names
            values = [v.encode() if isinstance(v, str) else v for v in row.values()]
            assert not search(b"\0".join(v for v in values if isinstance(v, bytes))), table


def test_only_the_evidence_command_shows_personal_data(
    somebody: tuple[LiveVendor, str], deployment: Deployment
) -> None:
    """Standard output and standard error; `buyers evidence`, which shows it on purpose, does."""
    vendor, cbid = somebody
    search = Search(personal_words())
    for arguments in (
        ("buyers", "show", cbid),
        ("buyers", "show", cbid, "--json"),
        ("buyers", "revoke", cbid, "--reason", "case 7", "--yes"),
        ("buyers", "reinstate", cbid, "--reason", "a mistake", "--json"),
        ("buyers", "audit", "--json"),
        ("accounts", "verification", "show", vendor.account_id),
        ("log", "check", "--json"),
        ("vault", "status"),
    ):
        done = deployment.run(*arguments)
        assert not search((done.stdout + done.stderr).encode()), arguments
    shown = deployment.run("buyers", "evidence", cbid, "--reason", "case 7")
    assert search(shown.stdout.encode())
    assert not search(shown.stderr.encode())
