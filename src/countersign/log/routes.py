"""The public logs (c2sp.org/tlog-tiles): checkpoints, tiles, entries. Digests and nothing else."""

from __future__ import annotations

import re
from typing import Final

from countersign.bootstrap import Deployment
from countersign.errors import InvalidRequest, NotFound
from countersign.evidence.entry import log_entry
from countersign.evidence.errors import EvidenceError
from countersign.evidence.tiles import HEIGHT, WIDTH, TileId, entry_bundle, parse_tile_path
from countersign.http.reply import Call, Header, Reply, etag_of, tagged
from countersign.log import tree_sql
from countersign.log.model import Log
from countersign.mode import Mode

_LOG: Final = re.compile(r"(test|live)/([1-9][0-9]{0,8})/(checkpoint|tile/.{1,200})\Z")
_TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")
_BYTES: Final[Header] = (b"content-type", b"application/octet-stream")
_CHANGES: Final[Header] = (b"cache-control", b"no-cache")
_FOR_EVER: Final[Header] = (b"cache-control", b"public, max-age=31536000, immutable")
# Anyone's browser may read what is public.
_OPEN: Final[Header] = (b"access-control-allow-origin", b"*")


async def get_keys(deployment: Deployment, _call: Call) -> Reply:
    """The verifier keys of every log, one a line (c2sp.org/signed-note)."""
    keys = await deployment.log.policy.keys()
    return Reply("".join(f"{key.vkey}\n" for key in keys).encode(), (_TEXT, _CHANGES, _OPEN))


async def get_policy(deployment: Deployment, call: Call) -> Reply:
    """The policy to verify evidence of one mode (c2sp.org/tlog-policy); `live` by default.

    Raises:
        InvalidRequest: `mode` is neither `live` nor `test`.
    """
    try:
        mode = Mode(call.query.get("mode", Mode.LIVE))
    except ValueError:
        msg = "The query parameter mode must be `live` or `test`."
        raise InvalidRequest(msg) from None
    return Reply(await deployment.log.policy.text(mode), (_TEXT, _CHANGES, _OPEN))


async def get_resource(deployment: Deployment, call: Call) -> Reply:
    """A checkpoint, a tile or a bundle of entries, by the path below `/v1/log/`."""
    found = _LOG.match(call.parameter)
    log = found and await deployment.log.seal.log(Mode(found[1]), int(found[2]))
    if not found or log is None:
        raise NotFound
    if found[3] == "checkpoint":
        quorum = deployment.log.policy.quorum(log.mode)
        newest = await deployment.log.seal.newest(log, quorum)
        return tagged(call, newest, etag_of(newest), _TEXT, _CHANGES, _OPEN)
    return await _tile(deployment, log, found[3].removeprefix("tile/"))


async def _tile(deployment: Deployment, log: Log, path: str) -> Reply:
    try:
        level, index, width = parse_tile_path(path)
    except EvidenceError:
        raise NotFound from None
    size = await deployment.log.seal.tiles_up_to(log)
    # How many nodes the level has in the tree of that size.
    nodes = size if level == "entries" else size >> (HEIGHT * level)
    start = index * WIDTH
    if start + width > nodes:
        raise NotFound
    scan = deployment.database.scan
    if level == "entries":
        digests = await scan(tree_sql.digests, log.id, start, start + width)
        body = entry_bundle([log_entry(log.origin, digest) for digest in digests])
    else:
        body = await scan(tree_sql.tile_hashes, log.id, TileId(level, index, width))
    return Reply(body, (_BYTES, _FOR_EVER, _OPEN))
