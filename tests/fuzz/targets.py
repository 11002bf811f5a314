"""The parsers of bytes from outside: their arguments, and their allowed errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from countersign.base.errors import CountersignError
from countersign.base.http.body import parse_body, read_query
from countersign.base.values import Mode
from countersign.core.access.account import parse_origin
from countersign.core.access.key import ENTROPY_BYTES, KeyKind, compose_key, well_formed
from countersign.core.acknowledgments.model import resolve_browser
from countersign.core.buyers.rules import document_zip5, is_zip
from countersign.core.checkout.brand import kind_of_logo
from countersign.core.gate.route import Call, Route, bearer, idempotency_key, is_plain_json
from countersign.core.log.policy import read_witnesses
from countersign.core.notices.notice_file import parse_notice_file
from countersign.core.webhooks.model import parse_target
from countersign.identity.base import IdentityProvider, Response, evidence_of
from countersign.identity.registry import IdentityProviders, provider_names
from countersign.identity.transport import ProviderReply
from countersign.server.routes import ROUTES
from countersign_evidence.alarm import parse_alarm
from countersign_evidence.approval import parse_proposal, read_private_key
from countersign_evidence.disclosure import read_disclosure
from countersign_evidence.dossier import read_container, write_container
from countersign_evidence.note import parse_checkpoint, parse_cosignature, parse_note
from countersign_evidence.offline import verify as offline
from countersign_evidence.policy import parse_policy
from countersign_evidence.proof import parse_proof
from countersign_evidence.receipt import check_receipt
from countersign_evidence.tiles import leaves_of, parse_tile_path
from countersign_evidence.timestamp import read_timestamp
from countersign_simulators.registry import SIMULATORS

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"
_BAD: Final = (offline.Bad, offline.NotCheckable)
CORPUS: Final = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Target:
    """A parser, and its allowed errors for invalid bytes."""

    parse: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = (CountersignError, ValueError)
    seeds: str = ""
    """Its initial vectors, as a pattern below `spec/vectors`."""
    made: Callable[[], Iterable[bytes]] = tuple
    """Further initial inputs: without valid ones, a search finds no way in."""

    def __call__(self, data: bytes) -> None:
        """Parse; any other exception than a refusal passes."""
        try:
            self.parse(data)
        except self.refusals as refusal:
            # Texts for people must be showable, whatever was read.
            str(refusal).encode()


def _text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data.decode("utf-8", "replace"))


def _picked(kinds: list[Any], parse: Callable[[bytes, Any], object]) -> Callable[[bytes], object]:
    """The first byte picks the type that the rest is read as."""
    return lambda data: parse(data[1:], kinds[(data or b"\0")[0] % len(kinds)])


@cache
def _policy() -> Any:  # noqa: ANN401 - see `parse_policy`
    return parse_policy((VECTORS / "dossier" / "good" / "policy.txt").read_bytes())


@cache
def _dossiers() -> list[dict[str, bytes]]:
    return [
        read_container(f.read_bytes()) for f in sorted((VECTORS / "dossier/good").glob("*.zip"))
    ]


def _dossier(data: bytes) -> None:
    """A good dossier with the content of one file replaced: it is judged, and never as good."""
    files = dict(_dossiers()[data[0] % len(_dossiers())])
    name = sorted(files)[data[1] % len(files)]
    changed, files[name] = files[name] != data[2:], data[2:]
    policy = offline.read_policy((VECTORS / "dossier" / "good" / "policy.txt").read_bytes())
    report = offline.verify_bytes(write_container(files), policy)
    if changed and name.endswith((".json", ".tlog-proof")) and report.failed is None:
        raise AssertionError(f"{name} was changed, and nothing failed")


def _headers(data: bytes) -> None:
    """Lines of a request's head, as they reach the gates."""
    lines = [line.partition(b":")[::2] for line in data.split(b"\n")]
    raw = tuple((name.strip().lower(), value.strip()) for name, value in lines)
    call = Call(
        method="POST", path="/", query_string=b"", headers=dict(raw), raw_headers=raw, peer=None
    )
    for name in ("forwarded", "x-forwarded-for"):
        resolve_browser(
            raw, peer="10.0.0.1", header=name, trusted_proxies=[ip_network("10.0.0.0/8")]
        )
    is_plain_json(call)
    idempotency_key(call)
    bearer(call)


@cache
def _provider(name: str) -> IdentityProvider[Any]:
    credentials = json.dumps(dict(SIMULATORS[name](_Clock().now).credentials)).encode()
    # Nothing listens there: messages that need a key of the provider's end as "cannot be decided
    # now".
    return IdentityProviders(lambda *_: b"\0" * 32, _Clock())(
        name, credentials, "http://127.0.0.1:9"
    )


class _Clock:
    """It stands still."""

    def time_ns(self) -> int:
        return 1_794_949_200 * 1_000_000_000

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> float:
        return 1_794_949_200.0


def _response(name: str, data: bytes) -> None:
    """A provider's response; the first byte picks its status."""
    provider, statuses = _provider(name), (200, 200, 200, 400, 401, 403, 404, 429, 500)
    reply = ProviderReply(
        status=statuses[(data or b"\0")[0] % len(statuses)],
        headers={"content-type": "application/json"},
        body=data[1:],
        target="GET /",
    )
    evidence = evidence_of(reply, _Clock(), "v1", None)
    provider.translate(
        Response(
            provider=name, session_id=provider.probe_session_id, reply=reply, evidence=evidence
        )
    )


def _message(name: str, data: bytes) -> None:
    """A provider's message: lines with a header each, an empty one, the body."""
    head, _, body = data.partition(b"\n\n")
    lines = (line.partition(b": ")[::2] for line in head.split(b"\n"))
    headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in lines}
    asyncio.run(_provider(name).read_webhook(headers, body))


def _messages(name: str) -> Iterator[bytes]:
    """Messages of the simulated provider about some of its sessions."""
    simulator = SIMULATORS[name](_Clock().now)
    for session in simulator.sessions[:3]:
        sent = simulator.webhook(session.session_id)
        head = "\n".join(f"{key}: {value}" for key, value in sent.headers)
        yield head.encode("latin-1") + b"\n\n" + sent.body


def _keys() -> Iterator[bytes]:
    yield compose_key(KeyKind.SECRET, Mode.TEST, bytes(ENTROPY_BYTES)).encode()


_BODIES: Final = [route for route in ROUTES if route.request is not None]
_QUERIES: Final = [route for route in ROUTES if route.query is not None]


def _documented(routes: Sequence[Route[Any]]) -> Iterator[bytes]:
    """The examples of the API's description, of bodies or of queries: see `_picked`."""
    paths = json.loads((VECTORS.parent / "openapi.json").read_bytes())["paths"]
    for number, route in enumerate(routes):
        said = paths.get(route.path, {}).get(route.method.lower())
        if said is None:
            continue
        if routes is _BODIES:
            kinds = said["requestBody"]["content"]["application/json"]
            given = kinds.get("examples", {"": {"value": kinds.get("example", {})}}).values()
            yield from (bytes([number]) + json.dumps(one["value"]).encode() for one in given)
        else:
            own = (one for one in said["parameters"] if one.get("in") == "query")
            values = {one["name"]: one.get("example", one["schema"].get("default")) for one in own}
            sent = {name: value for name, value in values.items() if value is not None}
            yield bytes([number]) + urlencode(sent).encode()


def _targets() -> Iterator[tuple[str, Target]]:
    yield from (
        ("alarm", Target(parse_alarm, seeds="alarm/*/*.json")),
        ("checkpoint", Target(parse_checkpoint, seeds="log/good/checkpoint")),
        ("container", Target(read_container, seeds="log/good/*.zip")),
        ("cosignature", Target(parse_cosignature, seeds="log/ml-dsa.line")),
        ("disclosure", Target(_text(read_disclosure))),
        ("disclosures", Target(lambda data: offline.read_disclosures(data, "a file"), _BAD)),
        ("entries", Target(lambda data: leaves_of(data, "example.com", 3))),
        ("note", Target(parse_note, seeds="log/good/checkpoint")),
        ("policy", Target(parse_policy, seeds="*/good/policy.txt")),
        ("private-key", Target(_text(read_private_key))),
        ("proof", Target(parse_proof, seeds="log/*/*.tlog-proof")),
        ("proposal", Target(parse_proposal)),
        ("receipt", Target(lambda data: check_receipt(data, _policy()))),
        ("tile-path", Target(_text(parse_tile_path))),
        ("time-stamp", Target(read_timestamp, seeds="*/timestamps/*")),
        ("witnesses", Target(read_witnesses)),
        # These judge, and never raise.
        ("verify", Target(offline.verify_bytes, (), "log/*/*.tlog-proof")),
        ("verify-dossier", Target(_dossier, (IndexError,))),
        ("offline-policy", Target(offline.read_policy, _BAD, "*/good/policy.txt")),
        ("offline-stamp", Target(offline.read_stamp, _BAD, "*/timestamps/*")),
        ("offline-zip", Target(offline.read_zip, _BAD, "log/good/*.zip")),
    )
    bodies, queries = [route.request for route in _BODIES], [route.query for route in _QUERIES]
    refused = (CountersignError,)
    examples = partial(_documented, _BODIES), partial(_documented, _QUERIES)
    yield from (
        ("body", Target(_picked(bodies, parse_body), refused, made=examples[0])),
        ("query", Target(_picked(queries, read_query), refused, made=examples[1])),
        ("headers", Target(_headers, (CountersignError,))),
        ("key", Target(_text(well_formed), (), made=_keys)),
        ("logo", Target(kind_of_logo, ())),
        ("notice-file", Target(parse_notice_file, (CountersignError,))),
        ("origin", Target(_text(parse_origin), ())),
        ("webhook-address", Target(_text(partial(parse_target, private=False)))),
        ("zip", Target(_text(lambda text: (is_zip(text), document_zip5(text))), ())),
    )
    for name in provider_names():
        yield f"response-{name}", Target(partial(_response, name), ())
        sent = partial(_messages, name)
        yield f"message-{name}", Target(partial(_message, name), refused, made=sent)


TARGETS: Final[Mapping[str, Target]] = dict(_targets())


def seeds(name: str) -> Iterator[bytes]:
    """The initial inputs of the target: findings of earlier searches, and its vectors."""
    yield b""
    yield from TARGETS[name].made()
    for file in sorted((CORPUS / name).glob("*")):
        yield file.read_bytes()
    for file in sorted(VECTORS.glob(TARGETS[name].seeds)) if TARGETS[name].seeds else ():
        if file.is_file():
            yield file.read_bytes()
