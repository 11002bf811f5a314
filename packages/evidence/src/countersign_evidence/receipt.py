"""Receipts: a signed promise that a record will be in the log by a time (evidence-format §18).

A receipt comes with the response, before there is a proof. If the log never gets the record, its
holder can show that. One signature covers a whole batch: it signs the root of a tree (RFC 6962
§2.1) over the batch's future entries, and a receipt has the path from its own entry.
"""

from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from countersign_evidence.encoding import read_hash, read_number, read_text
from countersign_evidence.entry import check_origin, leaves_of, log_entry
from countersign_evidence.errors import EvidenceError
from countersign_evidence.instant import parse_rfc3339, rfc3339_ms
from countersign_evidence.key_history import keys_for
from countersign_evidence.note import NoKnownSignature, Signer, Verifier, open_note, parse_note
from countersign_evidence.policy import Policy, UnnamedKey
from countersign_evidence.proof import PATH_LENGTH_MAX
from countersign_evidence.tree import leaf_hash, node_hash, verify_inclusion

RECEIPT_BYTES_MAX: Final = 100_000
_RECORD: Final = "record "
_INDEX: Final = "index "
_SEALED_BY: Final = "sealed-by "


class Promise(NamedTuple):
    """The content of a receipt whose signature and path were checked.

    `digest` is the SHA-256 of the record, `origin` the log that promised to have its entry by
    `sealed_by`, `key` the signing key.
    """

    digest: bytes
    origin: str
    sealed_by: datetime
    key: Verifier


def is_receipt(data: bytes) -> bool:
    """Whether these bytes begin as a receipt does."""
    return data[:RECEIPT_BYTES_MAX].partition(b"\n")[0].endswith(b"/receipt/v1")


def make_receipts(
    digests: Sequence[bytes], sealed_by: datetime, signers: Sequence[Signer]
) -> list[str]:
    """The receipts of the records with these SHA-256 digests, in their order.

    `signers`, at least one, are the keys of one log; each signs once.
    """
    origin = signers[0].verifier.name
    first, line = _first_line(origin), b2a_base64
    leaves = leaves_of(origin, digests)
    levels = _levels(leaves) if len(leaves) > 1 else [leaves]
    root = line(levels[-1][0]).decode()
    text = f"{first}\n{origin}\n{len(digests)}\n{root}{_SEALED_BY}{rfc3339_ms(sealed_by)}\n"
    signed = b"".join(signer.sign(text.encode()) for signer in signers).decode()
    end = f"\n{text}\n{signed}"
    encoded = [[line(hash_).decode() for hash_ in level] for level in levels[:-1]]
    paths = [_path(encoded, index) for index in range(len(digests))] if encoded else [""]
    return [
        f"{first}\n{_RECORD}{line(digest).decode()}{_INDEX}{index}\n{path}{end}"
        for index, (digest, path) in enumerate(zip(digests, paths, strict=True))
    ]


def check_receipt(data: bytes, policy: Policy, histories: Sequence[bytes] = ()) -> Promise:
    """The promise of a receipt, by a key of the policy or of a history that such keys signed.

    Raises EvidenceError if it is malformed, or no log of the policy signed it; UnnamedKey if only
    another key with the name of such a log did.
    """
    if len(data) > RECEIPT_BYTES_MAX:
        raise EvidenceError(f"a receipt has at most {RECEIPT_BYTES_MAX} bytes")
    head, blank, note = data.partition(b"\n\n")
    lines = iter(read_text(head, "a receipt is ASCII", "ascii").split("\n"))
    first = next(lines)
    digest = read_hash(_rest(lines, _RECORD))
    index = read_number(_rest(lines, _INDEX))
    path = [read_hash(line) for line in lines]
    if not blank or len(path) > PATH_LENGTH_MAX:
        raise EvidenceError("not a receipt")
    text = iter(read_text(parse_note(note).text, "a receipt is ASCII", "ascii").split("\n"))
    signed_first, origin = next(text), next(text, "")
    check_origin(origin)
    size, root = read_number(next(text, "")), read_hash(next(text, ""))
    until = _rest(text, _SEALED_BY)
    try:
        sealed_by = parse_rfc3339(until)
    except ValueError as error:
        raise EvidenceError("the receipt has no valid time") from error
    if {first, signed_first} != {_first_line(origin)} or rfc3339_ms(sealed_by) != until:
        raise EvidenceError("not a receipt")
    if [*text] != [""]:
        raise EvidenceError("the receipt has unexpected lines")
    own, by = _signed(note, origin, policy, histories)
    verify_inclusion(index, size, leaf_hash(log_entry(origin, digest)), path, root)
    key = next(key for key in own if key.signs_as == by)
    return Promise(digest, origin, sealed_by, key)


def _signed(
    note: bytes, origin: str, policy: Policy, histories: Sequence[bytes]
) -> tuple[Sequence[Verifier], tuple[str, bytes]]:
    """The keys of the log, and name and id of the signing key."""
    own = [key for key in policy.logs if key.name == origin]
    # A receipt has no size: any key of the log counts.
    for keys in (own, keys_for(policy, origin, None, histories)):
        try:
            _, [line, *_] = open_note(note, [key for key in keys if key.checkable])
        except NoKnownSignature:
            continue
        return keys, line.by
    unknown = own and any(line.name == origin for line in parse_note(note).signatures)
    raise (UnnamedKey if unknown else EvidenceError)(f"no log of the policy signed for {origin}")


def _first_line(origin: str) -> str:
    """Never the first line of a checkpoint, an origin: neither passes as the other."""
    return f"{origin.partition('/')[0]}/receipt/v1"


def _levels(hashes: list[bytes]) -> list[list[bytes]]:
    """The hashes of the tree level by level, from the leaves to the root.

    The last hash of an odd level moves up unchanged, as in the tree of RFC 6962 §2.1.
    """
    levels = [hashes]
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=False)
        hashes = [node_hash(left, right) for left, right in pairs] + hashes[len(hashes) & ~1 :]
        levels.append(hashes)
    return levels


def _path(levels: Sequence[Sequence[str]], index: int) -> str:
    """The hashes from a leaf's sibling to below the root, one a line."""
    path = ""
    for level in levels:
        if (index ^ 1) < len(level):
            path += level[index ^ 1]
        index >>= 1
    return path


def _rest(lines: Iterator[str], start: str) -> str:
    """The next line without its start."""
    line = next(lines, "")
    if not line.startswith(start):
        raise EvidenceError(f"the line with {start.strip()} is missing")
    return line.removeprefix(start)
