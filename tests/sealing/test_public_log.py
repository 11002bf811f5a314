"""The public logs, read as a monitor reads them: by tiles, without a key."""

from __future__ import annotations

import re

import httpx2
import pytest

from countersign_evidence.note import Checkpoint, Verifier, open_note, parse_checkpoint
from countersign_evidence.tiles import tile_path
from countersign_evidence.tree import leaf_hash
from tests.sealing.acts import acknowledge, evidence_of, get
from tests.support.merkle import parse_entry_bundle, root_hash
from tests.support.service import Deployment, Server, running_server


def checkpoint(no_one: httpx2.Client, mode: str = "test") -> Checkpoint:
    keys = [Verifier.parse(line) for line in no_one.get("/v1/log/keys").text.splitlines()]
    note = no_one.get(f"/v1/log/{mode}/1/checkpoint").content
    return parse_checkpoint(open_note(note, keys)[0])


def read(no_one: httpx2.Client, level: str, size: int) -> bytes:
    """All tiles of a level, one after the other."""
    found = b""
    for index in range((size + 255) // 256):
        width = min(256, size - index * 256)
        name = "entries" if level == "entries" else int(level)
        path = tile_path(name, index, width)  # type: ignore[arg-type]
        answer = no_one.get(f"/v1/log/test/1/tile/{path}")
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"]
        found += answer.content
    return found


def test_entries_lead_to_tiles_and_tiles_to_the_root(client: httpx2.Client, server: Server) -> None:
    """Past one full tile, so that complete and partial ones are read."""
    made = [acknowledge(client) for _ in range(270)]
    get(client, made[-1], "proof")
    with server.client() as no_one:
        head = checkpoint(no_one)
        assert head.size > 256
        entries = parse_entry_bundle(read(no_one, "entries", head.size))
        leaves = [leaf_hash(entry) for entry in entries]
        assert read(no_one, "0", head.size) == b"".join(leaves)
        assert read(no_one, "1", head.size >> 8) == b"".join(
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
def test_missing_resources_of_the_log_are_not_found(server: Server, path: str) -> None:
    """There is no made-up tile beyond the edge."""
    with server.client() as no_one:
        answer = no_one.get(f"/v1/log/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_the_keys_are_one_vkey_a_line_whose_names_are_the_origins(server: Server) -> None:
    """And the policy names the live ones."""
    with server.client() as no_one:
        keys = no_one.get("/v1/log/keys").text.splitlines()
        policy = no_one.get("/v1/log/policy").text
    names = [Verifier.parse(key).name for key in keys]
    assert sorted(name.split("/", 1)[1] for name in names) == ["v1/log/live/1", "v1/log/test/1"]
    assert [f"log {key}" for key in keys if "/live/" in key] == policy.splitlines()[:-1]
    assert policy.splitlines()[-1] == "quorum none"


def test_the_newest_checkpoint_is_not_sent_again_to_a_caller_that_has_it(server: Server) -> None:
    """An entity tag stands for its bytes."""
    with server.client() as no_one:
        first = no_one.get("/v1/log/live/1/checkpoint")
        again = no_one.get(
            "/v1/log/live/1/checkpoint", headers={"If-None-Match": first.headers["etag"]}
        )
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["access-control-allow-origin"] == "*"


def hold_heads(deployment: Deployment) -> None:
    """Let nothing be written into `heads` from now on, by any process."""
    lock = deployment.data_dir / "heads" / ".lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()


def test_the_last_published_checkpoint_is_served_while_no_later_one_can_be(
    embedded: Deployment,
) -> None:
    """Also by a server that was started in the middle of the trouble."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
        before = checkpoint(client)
        hold_heads(embedded)
        assert evidence_of(client, acknowledge(client))["index"] == before.size
        assert checkpoint(client) == before
    with running_server(embedded) as server, server.client() as no_one:
        assert checkpoint(no_one) == before


def test_no_tile_leaves_before_its_checkpoint(embedded: Deployment) -> None:
    """An entry that is not kept outside yet can still be lost, and caches keep tiles for a year."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
        size = checkpoint(client).size
        hold_heads(embedded)
        acknowledge(client)
        for level in ("entries", "0"):
            base = f"/v1/log/test/1/tile/{level}/000.p"
            assert client.get(f"{base}/{size}").status_code == 200
            assert client.get(f"{base}/{size + 1}").status_code == 404


def test_a_server_that_cannot_tell_the_published_head_asks_for_a_retry(
    embedded: Deployment,
) -> None:
    """It makes nothing up: 503, after which mirrors retry."""
    embedded.run("log", "status")
    (embedded.data_dir / "heads" / "test.checkpoint").write_bytes(b"damaged")
    with running_server(embedded) as server, server.client() as no_one:
        answer = no_one.get("/v1/log/test/1/checkpoint")
        tile = no_one.get("/v1/log/test/1/tile/0/000.p/1")
    for refused in (answer, tile):
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            503,
            "storage_unavailable",
        )
        assert int(refused.headers["retry-after"]) >= 1
