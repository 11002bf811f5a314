"""The public logs, read as a monitor reads them: by tiles, without a key."""

from __future__ import annotations

import re

import httpx2
import pytest

from countersign.evidence.checkpoint import Checkpoint, parse_checkpoint
from countersign.evidence.note import Verifier, open_note
from countersign.evidence.tiles import parse_entry_bundle, tile_path
from countersign.evidence.tree import leaf_hash, root_hash
from tests.sealing.acts import acknowledge, get
from tests.support.service import Server


def checkpoint(nobody: httpx2.Client, mode: str = "test") -> Checkpoint:
    keys = [Verifier.parse(line) for line in nobody.get("/v1/log/keys").text.splitlines()]
    note = nobody.get(f"/v1/log/{mode}/1/checkpoint").content
    return parse_checkpoint(open_note(note, keys)[0])


def read(nobody: httpx2.Client, level: str, size: int) -> bytes:
    """All tiles of a level, one after the other."""
    found = b""
    for index in range((size + 255) // 256):
        width = min(256, size - index * 256)
        name = "entries" if level == "entries" else int(level)
        path = tile_path(name, index, width)  # type: ignore[arg-type]
        answer = nobody.get(f"/v1/log/test/1/tile/{path}")
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"]
        found += answer.content
    return found


def test_entries_lead_to_tiles_and_tiles_to_the_root(client: httpx2.Client, server: Server) -> None:
    """Past one full tile, so that complete and partial ones are read."""
    made = [acknowledge(client) for _ in range(270)]
    get(client, made[-1], "proof")
    with server.client() as nobody:
        head = checkpoint(nobody)
        assert head.size > 256
        entries = parse_entry_bundle(read(nobody, "entries", head.size))
        leaves = [leaf_hash(entry) for entry in entries]
        assert read(nobody, "0", head.size) == b"".join(leaves)
        assert read(nobody, "1", head.size >> 8) == b"".join(
            root_hash(leaves[i : i + 256]) for i in range(0, head.size - 255, 256)
        )
        assert root_hash(leaves) == head.root
    host = head.origin.partition("/")[0]
    form = re.compile(rf"{re.escape(host)}/entry/v1\n[A-Za-z0-9+/]{{43}}=\n")
    assert all(form.fullmatch(entry.decode()) for entry in entries), "digests and nothing else"
    assert len(set(entries)) == len(entries)


@pytest.mark.parametrize(
    "path",
    [
        "test/1",
        "test/1/",
        "test/2/checkpoint",
        "live/01/checkpoint",
        "prod/1/checkpoint",
        "test/1/tile/0/999",
        "test/1/tile/0/x000/000",
        "test/1/tile/0/000.p/256",
        "test/1/tile/9/000.p/1",
        "test/1/tile/-1/000",
        "test/1/tile/entries/900.p/3",
        "test/1/tile/" + "x" * 500,
    ],
)
def test_what_the_log_does_not_have_is_not_found(server: Server, path: str) -> None:
    """Nothing is made up for a tile beyond the edge."""
    with server.client() as nobody:
        answer = nobody.get(f"/v1/log/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_the_keys_are_one_vkey_a_line_whose_names_are_the_origins(server: Server) -> None:
    """And the policy names the live ones."""
    with server.client() as nobody:
        keys = nobody.get("/v1/log/keys").text.splitlines()
        policy = nobody.get("/v1/log/policy").text
    names = [Verifier.parse(key).name for key in keys]
    assert sorted(name.split("/", 1)[1] for name in names) == ["v1/log/live/1", "v1/log/test/1"]
    assert [f"log {key}" for key in keys if "/live/" in key] == policy.splitlines()[:-1]
    assert policy.splitlines()[-1] == "quorum none"
