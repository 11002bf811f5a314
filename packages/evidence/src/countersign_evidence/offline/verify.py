"""Check evidence of an acknowledgment: offline, with Python 3.11 or newer and nothing else.

    python3 -I verify.py                          the files of the dossier that this file came in
    python3 -I verify.py DOSSIER.zip              the dossier of an order, or of one record
    python3 -I verify.py FOLDER                   one that was unpacked
    python3 -I verify.py PROOF --policy POLICY    a proof alone

    --policy FILE   trust the keys in this file. Without it, the keys that came in the dossier
                    itself are used, which shows only that the dossier is consistent.
    --own-key       exit with 0, not 3, if the dossier is consistent with its own keys
    --json          print the outcome as JSON
    --version       print the version of this file

With -I Python takes no module from the folders around it, which may hold somebody's `json.py`.

Exit status: 0 all checks passed; 1 a check failed; 2 it could not be checked (usage, no such file,
a kind of signature that is not known here, a container of an earlier release, a Python that is too
old); 3 all checks passed, but by the key in the dossier itself.

How to read this file: part 1 has the two signature schemes, part 2 the hash tree, part 3 the
formats, part 4 the container, part 5 the steps in their order, part 6 the dossier of an order, part
7 the verdict in a few lines for people, part 8 the command. Every check that does not hold raises
`Bad`. Nothing is sent anywhere, nothing is written, no other program is started.
"""

import sys

VERSION = "0.1.0"

# Any Python from 3.6 on reads this file as far as here, so keep its syntax that old.
if sys.version_info < (3, 11):
    sys.stderr.write(f"verify.py {VERSION} needs Python 3.11 or newer. ")
    sys.stderr.write(f"This is {sys.version.split()[0]}: nothing was checked.\n")
    sys.exit(2)

if __name__ == "__main__" and not sys.flags.safe_path:
    # Without -I Python looks for modules next to this file first, and the maker of the dossier
    # could have put a `json.py` there.
    del sys.path[0]

import base64
import hashlib
import json
import re
import struct
import zlib
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple


class Bad(Exception):
    """A check failed; the message says which."""


class NotCheckable(Exception):
    """A check depends on what is there, and of a kind that is not known here."""


def sha256(data: bytes) -> bytes:
    """The SHA-256 of these bytes (FIPS 180-4)."""
    return hashlib.sha256(data).digest()


# ---------------------------------------------------------------------------------------------
# Part 1. Ed25519 signatures, as RFC 8032, section 5.1, defines them. Only public values are
# handled, so nothing has to be kept secret by running in constant time.

P = 2**255 - 19  # the field
L = 2**252 + 27742317777372353535851937790883648493  # the order of the base point
D = -121665 * pow(121666, -1, P) % P
SQRT_MINUS_1 = pow(2, (P - 1) // 4, P)

# A point (x, y) in extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z.
Point = tuple[int, int, int, int]
NEUTRAL: Point = (0, 1, 1, 0)


def add(p: Point, q: Point) -> Point:
    """The sum of two points (section 5.1.4)."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(number: int, point: Point) -> Point:
    """The point added to itself so many times."""
    total = NEUTRAL
    while number:
        if number & 1:
            total = add(total, point)
        point = add(point, point)
        number >>= 1
    return total


def decode_point(data: bytes) -> Point:
    """The point in 32 bytes (section 5.1.3); only the one canonical encoding is taken."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        raise Bad("a point is not encoded canonically")
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == P - u and u:
        x = x * SQRT_MINUS_1 % P
    if v * x * x % P != u:
        raise Bad("not a point of the curve")
    if x == 0 and sign:
        raise Bad("a point is not encoded canonically")
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


def encode_point(point: Point) -> bytes:
    """The 32 bytes of a point (section 5.1.2)."""
    inverse = pow(point[2], -1, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = decode_point(bytes.fromhex("58" + "66" * 31))


def ed25519_verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this is a signature of the message by the key (section 5.1.7).

    Of the two forms of the last equation that the RFC allows this is the stricter one, without the
    cofactor 8.
    """
    if len(signature) != 64 or not (is_sound(public_key) and is_sound(signature[:32])):
        return False
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if s >= L:  # otherwise one signature could be written in two ways
        return False
    try:
        x, y, z, t = decode_point(public_key)
    except Bad:
        return False
    k = int.from_bytes(hashlib.sha512(r + public_key + message).digest(), "little") % L
    # S*B = R + k*A, that is R = S*B + k*(-A)
    return encode_point(add(multiply(s, BASE), multiply(k, (-x % P, y, z, -t % P)))) == r


def is_sound(point: bytes) -> bool:
    """Whether it is written in the one way, and no point of small order.

    By a key of small order anyone signs anything. Where a key or an R is odd, other implementations
    do not agree with each other: so this is asked before a signature is checked, by whatever means.
    """
    y = int.from_bytes(point, "little") & (2**255 - 1)
    return len(point) == 32 and y < P and y not in {0, 1, P - 1, ORDER_8, P - ORDER_8}


# The y of four points of order 8; the eight points whose order divides 8 have it, -y, 0, 1 or -1.
ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)


# ---------------------------------------------------------------------------------------------
# Part 1b. ML-DSA-44 signatures, as FIPS 204 defines them: verifying, with the algorithms' numbers.
# A polynomial is a list of its 256 coefficients.

Q = 8380417  # the field
TAU, GAMMA_1, GAMMA_2, BETA, OMEGA, DROPPED = 39, 2**17, (Q - 1) // 88, 78, 80, 13
PURE = b"\0\0"  # before a message: not a hash of it, and in no particular context
ROWS = range(4)  # the matrix A has as many columns
ROOTS = [pow(1753, int(f"{number:08b}"[::-1], 2), Q) for number in range(256)]
Poly = list[int]


def unpack(data: bytes, bits: int) -> Poly:
    """256 numbers of so many bits, the least significant first (algorithms 18 and 19)."""
    number = int.from_bytes(data, "little")
    return [number >> bits * n & (1 << bits) - 1 for n in range(256)]


def transform(w: Poly) -> Poly:
    """The number-theoretic transform (algorithm 41): products become those of each place."""
    w, m, length = list(w), 0, 128
    while length:
        for start in range(0, 256, 2 * length):
            m += 1
            for j in range(start, start + length):
                t = ROOTS[m] * w[j + length] % Q
                w[j], w[j + length] = (w[j] + t) % Q, (w[j] - t) % Q
        length //= 2
    return w


def transform_back(w: Poly) -> Poly:
    """The inverse of `transform` (algorithm 42)."""
    w, m, length = list(w), 256, 1
    while length < 256:
        for start in range(0, 256, 2 * length):
            m -= 1
            for j in range(start, start + length):
                t, u = w[j], w[j + length]
                w[j], w[j + length] = (t + u) % Q, ROOTS[m] * (u - t) % Q
        length *= 2
    return [pow(256, -1, Q) * value % Q for value in w]


def matrix_entry(seed: bytes) -> Poly:
    """One polynomial of the matrix A, in the transformed domain (algorithm 30)."""
    found: Poly = []
    length = 840
    while len(found) < 256:
        data = hashlib.shake_128(seed).digest(length)
        values = [
            int.from_bytes(data[at : at + 3], "little") & 0x7FFFFF for at in range(0, length, 3)
        ]
        found = [value for value in values if value < Q]
        length *= 2
    return found[:256]


def challenge(seed: bytes) -> Poly:
    """The polynomial c of 39 ones and minus ones that a hash stands for (algorithm 29)."""
    c = [0] * 256
    data = hashlib.shake_256(seed).digest(1000)
    signs, rest = int.from_bytes(data[:8], "little"), iter(data[8:])
    for i in range(256 - TAU, 256):
        j = next(byte for byte in rest if byte <= i)
        c[i], c[j] = c[j], 1 - 2 * (signs & 1)
        signs >>= 1
    return c


def read_hints(data: bytes) -> list[set[int]]:
    """Of each row, the places that have a hint, written in the one way allowed (algorithm 21)."""
    hints, index = [], 0
    for end in data[OMEGA:]:
        places = data[index:end]
        if not index <= end <= OMEGA or sorted(set(places)) != list(places):
            raise Bad("the hints are not written as FIPS 204 says")
        hints.append(set(places))
        index = end
    if any(data[index:OMEGA]):
        raise Bad("the hints are not written as FIPS 204 says")
    return hints


def high_part(value: int, hint: bool) -> int:  # noqa: FBT001 - the standard's two arguments
    """The high part of a coefficient, moved by one if there is a hint (algorithms 36 and 40)."""
    low = value % (2 * GAMMA_2)
    low -= 2 * GAMMA_2 if low > GAMMA_2 else 0
    high, low = (0, low - 1) if value - low == Q - 1 else ((value - low) // (2 * GAMMA_2), low)
    return (high + (1 if low > 0 else -1)) % 44 if hint else high


def ml_dsa_verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this is a signature of the message by the key (algorithm 8).

    What is signed begins with two bytes, see `PURE`, that algorithm 3 puts before the message.
    """
    if len(public_key) != 1312 or len(signature) != 2420:
        return False
    try:
        hints = read_hints(signature[2336:])
    except Bad:
        return False
    packed = (signature[32 + 576 * n :][:576] for n in ROWS)
    z = [[GAMMA_1 - value for value in unpack(part, 18)] for part in packed]
    if max(abs(value) for poly in z for value in poly) >= GAMMA_1 - BETA:
        return False
    high = [unpack(public_key[32 + 320 * n :][:320], 10) for n in ROWS]
    z = [transform(poly) for poly in z]
    c = transform(challenge(signature[:32]))
    hashed = hashlib.shake_256(public_key).digest(64)
    hashed = hashlib.shake_256(hashed + message).digest(64)
    for row in ROWS:
        t = transform([value << DROPPED for value in high[row]])
        total = [-c[n] * t[n] for n in range(256)]
        for column in ROWS:
            entry = matrix_entry(public_key[:32] + bytes([column, row]))
            total = [total[n] + entry[n] * z[column][n] for n in range(256)]
        w = transform_back([value % Q for value in total])
        number = sum(high_part(w[n], n in hints[row]) << 6 * n for n in range(256))
        hashed += number.to_bytes(192, "little")
    return hashlib.shake_256(hashed).digest(32) == signature[:32]


# ---------------------------------------------------------------------------------------------
# Part 2. The hash tree of RFC 6962 (and RFC 9162, section 2.1).


def leaf_of(origin: str, record: bytes) -> bytes:
    """The leaf of a record: the log holds `<host>/entry/v1` and the record's SHA-256, no more."""
    entry = f"{origin.partition('/')[0]}/entry/v1\n".encode()
    return sha256(b"\x00" + entry + base64.b64encode(sha256(record)) + b"\n")


def root_from(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """The root that a path leads to from a leaf (RFC 9162, section 2.1.3.2)."""
    if index >= size:
        raise Bad(f"entry {index} cannot be in a log of {size}")
    fn, sn, r = index, size - 1, leaf
    for p in path:
        if sn == 0:
            raise Bad("the path is too long")
        if fn & 1 or fn == sn:
            r = sha256(b"\x01" + p + r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = sha256(b"\x01" + r + p)
        fn, sn = fn >> 1, sn >> 1
    if sn:
        raise Bad("the path is too short")
    return r


# ---------------------------------------------------------------------------------------------
# Part 3. Formats: base64, JSON, signed notes, checkpoints, proofs, policies, time-stamps.

BYTES_MAX = 16_000_000
ID = re.compile(r"[a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25}", re.ASCII)
ED25519, COSIGNATURE, ML_DSA = 1, 4, 6  # the kinds of keys that can be checked here
DEPTH_MAX = 64
ORIGIN = re.compile(
    r"[A-Za-z0-9._~\[\]:-]+(?:/[A-Za-z0-9._~-]+)*/v1/log/(test|live)/[1-9][0-9]{0,8}", re.ASCII
)


def read_base64(text: str) -> bytes:
    """Base64 (RFC 4648, section 4), written in its one canonical way."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Bad("not valid base64") from error
    if base64.b64encode(data).decode() != text:
        raise Bad("not canonical base64")
    return data


def base64url(data: bytes) -> str:
    """Base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def read_base64url(text: str) -> bytes:
    """The bytes of base64url without padding, written in its one canonical way."""
    if re.fullmatch(r"[A-Za-z0-9_-]*", text, re.ASCII) is None or len(text) % 4 == 1:
        raise Bad("not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64url(data) != text:
        raise Bad("not canonical base64url")
    return data


def read_text(data: bytes, what: str) -> str:
    """UTF-8 text."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Bad(f"{what} is not UTF-8") from error


def read_number(text: str) -> int:
    """Decimal digits without leading zeros, at most 2^63 - 1."""
    if re.fullmatch(r"0|[1-9][0-9]{0,18}", text, re.ASCII) is None or int(text) >= 2**63:
        raise Bad("not a number from 0 to 2^63 - 1")
    return int(text)


def read_hash(text: str) -> bytes:
    """A SHA-256 in base64."""
    data = read_base64(text)
    if len(data) != 32:
        raise Bad("a hash has 32 bytes")
    return data


def read_json(data: bytes, what: str) -> Any:  # noqa: ANN401 - JSON is any of several types
    """JSON (RFC 8259) in UTF-8, without what one reader understands and another does not.

    That is what Python allows besides, a member that is there twice, and numbers that are not
    written as plain integers.
    """

    def refuse(_: str) -> None:
        raise Bad(f"{what} has a number that is no plain integer")

    def integer(text: str) -> int:
        if text == "-0":
            refuse(text)
        return int(text)

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise Bad(f"{what} has a duplicate member")
        return dict(pairs)

    try:
        return json.loads(
            read_text(data, what),
            parse_constant=refuse,
            parse_float=refuse,
            parse_int=integer,
            object_pairs_hook=members,
        )
    except (ValueError, RecursionError) as error:
        raise Bad(f"{what} is not JSON") from error


def canonical(value: object) -> bytes:
    """The one way to write a JSON value: sorted, no white space, no floats (RFC 8785)."""
    _check_canonical(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Bad("a lone surrogate is not text") from error


def _check_canonical(value: object, levels: int = DEPTH_MAX) -> None:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**53):
        raise Bad("numbers are integers below 2^53 in magnitude")
    if isinstance(value, list | dict) and not levels:
        raise Bad(f"more than {DEPTH_MAX} nested arrays and objects")
    if isinstance(value, list):
        for item in value:
            _check_canonical(item, levels - 1)
    if isinstance(value, dict):
        for name, item in value.items():
            if not name.isascii():
                raise Bad("names of members are ASCII")
            _check_canonical(item, levels - 1)


class Key(NamedTuple):
    """A key that signs notes (c2sp.org/signed-note)."""

    name: str
    kind: int
    public_key: bytes
    key_id: bytes  # what a signature line names the key by, besides its name

    @property
    def checkable(self) -> bool:
        """Whether signatures by this kind of key can be checked here."""
        return self.kind in {ED25519, COSIGNATURE, ML_DSA}

    @property
    def fingerprint(self) -> str:
        """The hexadecimal SHA-256 of the bytes of the public key."""
        return sha256(self.public_key).hex()

    def verifies(self, text: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of a note's text."""
        time = 0
        if self.kind != ED25519:
            # c2sp.org/tlog-cosignature: eight bytes of time, and the signature.
            time, signature = int.from_bytes(signature[:8], "big"), signature[8:]
        try:
            return time < 2**63 and self.signed(self.message(text, time), signature)
        except Bad:
            return False

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether this is the key's signature of these bytes."""
        if self.kind == ML_DSA:
            return ml_dsa_verify(self.public_key, PURE + message, signature)
        return ed25519_verify(self.public_key, message, signature)

    def message(self, text: bytes, time: int) -> bytes:
        """The signed bytes for a note's text, at this time (Unix seconds) for a cosigner's key."""
        if self.kind == ED25519:
            return text
        if self.kind == COSIGNATURE:
            return f"cosignature/v1\ntime {time}\n".encode() + text
        # The whole tree of the checkpoint; its extension lines are not signed.
        origin, size, root = read_checkpoint(text)
        names = [self.name.encode(), origin.encode()]
        if max(map(len, names)) > 255:
            raise Bad("a name that is cosigned has at most 255 bytes")
        name, log = (bytes([len(name)]) + name for name in names)
        tree = struct.pack(">QQ", 0, size) + root
        return b"subtree/v1\n\0" + name + struct.pack(">Q", time) + log + tree


def check_key_name(name: str) -> None:
    """A name is not empty and has neither space nor plus."""
    if not name or "+" in name or any(character.isspace() for character in name):
        raise Bad("not the name of a key")


def read_vkey(text: str) -> Key:
    """A verifier key: `name+hex8+base64(kind, public key)`."""
    read_text(text.encode("utf-8", "surrogateescape"), "a verifier key")
    name, _, rest = text.partition("+")
    key_id, _, encoded = rest.partition("+")
    check_key_name(name)
    data = read_base64(encoded)
    if not data or re.fullmatch(r"[0-9a-f]{8}", key_id, re.ASCII) is None:
        raise Bad("not a verifier key")
    key = Key(name, data[0], data[1:], bytes.fromhex(key_id))
    # Kinds that are not known here may make their ids in another way.
    if key.checkable and key.key_id != sha256(name.encode() + b"\n" + data)[:4]:
        raise Bad(f"the id of the key {name} does not match the key")
    # A key that is odd is refused when it is read, before anything is signed by it.
    if key.kind in {ED25519, COSIGNATURE} and len(key.public_key) != 32:
        raise Bad("an Ed25519 key has 32 bytes")
    if key.kind in {ED25519, COSIGNATURE} and not is_sound(key.public_key):
        raise Bad("an Ed25519 key of small order, or not in canonical form")
    if key.kind == ML_DSA and len(key.public_key) != 1312:
        raise Bad("an ML-DSA-44 key has 1312 bytes")
    return key  # whether it can be checked here or not: only a quorum may need it


class Signature(NamedTuple):
    """A signature line of a note."""

    name: str
    key_id: bytes
    signature: bytes


def read_note(data: bytes) -> tuple[bytes, list[Signature]]:
    """A signed note (c2sp.org/signed-note): its text, and its signatures, not yet checked."""
    if len(data) > 1_000_000:
        raise Bad("a note has at most 1,000,000 bytes")
    note = read_text(data, "the checkpoint")
    if any(ord(character) < 32 and character != "\n" for character in note):
        raise Bad("a note has no control characters but newlines")
    body, blank, lines = note.rpartition("\n\n")
    if not blank or not lines.endswith("\n"):
        raise Bad("a note is a text, an empty line, and signature lines")
    signatures = []
    for line in lines[:-1].split("\n"):
        if not line.startswith("\u2014 "):
            raise Bad("a signature line begins with a dash")
        name, _, encoded = line[2:].partition(" ")
        check_key_name(name)
        signature = read_base64(encoded)
        if len(signature) <= 4:
            raise Bad("a signature is longer than the id of its key")
        signatures.append(Signature(name, signature[:4], signature[4:]))
    if len(signatures) > 100:
        raise Bad("a note has at most 100 signatures")
    return (body + "\n").encode(), signatures


class Checkpoint(NamedTuple):
    """The head of a log (c2sp.org/tlog-checkpoint)."""

    origin: str
    size: int
    root: bytes


def read_checkpoint(text: bytes) -> Checkpoint:
    """Origin, size and root, each on a line; lines after them are extensions, which are signed."""
    lines = read_text(text, "the checkpoint").split("\n")
    if len(lines) < 4 or lines.pop() or "" in lines:
        raise Bad("a checkpoint is an origin, a size and a root, each on a line")
    return Checkpoint(lines[0], read_number(lines[1]), read_hash(lines[2]))


class Proof(NamedTuple):
    """A proof (c2sp.org/tlog-proof): where in the tree the record is, and the path to the root."""

    record: bytes
    position: int
    path: list[bytes]
    note: bytes


PROOF_LINE = "c2sp.org/tlog-proof@v1"


def read_proof(data: bytes) -> Proof:
    """A proof, not yet checked; the record is in its `extra` line."""
    if len(data) > 2_000_000:
        raise Bad("a proof has at most 2,000,000 bytes")
    head, blank, note = data.partition(b"\n\n")
    if not blank or not note or not head.isascii():
        raise Bad("a proof is some lines of ASCII, an empty line and a checkpoint")
    lines = head.decode().split("\n")
    if lines.pop(0) != PROOF_LINE:
        raise Bad(f"a proof begins with {PROOF_LINE}")
    if not lines or not lines[0].startswith("extra "):
        raise Bad("the proof does not contain its record")
    record = read_base64(lines.pop(0).removeprefix("extra "))
    if not lines or not lines[0].startswith("index "):
        raise Bad("the line with the index is missing")
    index = read_number(lines.pop(0).removeprefix("index "))
    if len(lines) > 63:
        raise Bad("a path has at most 63 hashes")
    return Proof(record, index, [read_hash(line) for line in lines], note)


class Policy(NamedTuple):
    """Whose checkpoints count, and which witnesses must have signed (c2sp.org/tlog-policy)."""

    logs: list[Key]
    witnesses: dict[str, Key]
    groups: dict[str, tuple[int, list[str]]]  # name: how many, of whom
    quorum: str


def read_policy(data: bytes) -> Policy:
    """A policy: `log`, `witness`, `group` and `quorum` lines; a name stands above its use."""
    if len(data) > 1_000_000:
        raise Bad("a policy has at most 1,000,000 bytes")
    if any((octet < 32 and octet not in b"\t\n") or octet == 127 for octet in data):
        raise Bad("a policy has no control characters but tab and newline")
    # Names may hold any bytes, and comments too: `surrogateescape` keeps them apart.
    policy, quorum = Policy([], {}, {}, ""), ""
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1):
        words = [word for word in re.split("[\t ]", line) if word]
        if not words or words[0].startswith("#"):
            continue
        try:
            quorum = _policy_line(policy, words, quorum)
        except Bad as error:
            raise Bad(f"line {number} of the policy: {error}") from error
        if len(policy.logs) + len(policy.witnesses) + len(policy.groups) > 999:
            raise Bad("a policy has at most 999 definitions")
    if not quorum:
        raise Bad("a policy has a quorum line")
    return policy._replace(quorum=quorum)


def _policy_line(policy: Policy, words: list[str], quorum: str) -> str:
    """Take one line into the policy; gives the quorum, if there was or now is one."""
    defined = {"none", *policy.witnesses, *policy.groups}
    word, items = words[0], words[1:]
    if word == "log" and len(items) in {1, 2}:
        key = read_vkey(items[0])
        if any(key.public_key == log.public_key for log in policy.logs):
            raise Bad("the same key as another log")
        policy.logs.append(key)
    elif word == "witness" and len(items) in {2, 3}:
        name, key = items[0], read_vkey(items[1])
        if key.kind == ED25519:
            raise Bad("the key of a witness cannot be of the kind for logs")
        if any(key.public_key == other.public_key for other in policy.witnesses.values()):
            raise Bad("the same key as another witness")
        if name in defined:
            raise Bad("the name is already defined")
        policy.witnesses[name] = key
    elif word == "group" and len(items) > 2:
        name, how, members = items[0], items[1], items[2:]
        taken = {member for _, others in policy.groups.values() for member in others}
        if len(set(members)) != len(members) or taken & set(members):
            raise Bad("a name can be a member only once")
        if "none" in members or not set(members) <= defined:
            raise Bad("a member is not defined above")
        if name in defined:
            raise Bad("the name is taken")
        if how not in {"all", "any"} and not re.fullmatch(r"[1-9][0-9]{0,3}", how, re.ASCII):
            raise Bad("expected all, any or a number")
        needed = {"all": len(members), "any": 1}.get(how) or int(how)
        if needed > len(members):
            raise Bad("the number must be from 1 to the number of members")
        policy.groups[name] = (needed, members)
    elif word == "quorum" and len(items) == 1:
        if quorum:
            raise Bad("a policy has only one quorum line")
        if items[0] not in defined:
            raise Bad("the quorum is not defined above")
        return items[0]
    else:
        raise Bad("not a log, witness, group or quorum line")
    return quorum


class Stamp(NamedTuple):
    """What a time-stamp says (RFC 3161): the hash of what it is about, and when."""

    algorithm: bytes
    digest: bytes
    at: str


HASHES = {
    bytes.fromhex("608648016503040201"): hashlib.sha256,
    bytes.fromhex("608648016503040202"): hashlib.sha384,
    bytes.fromhex("608648016503040203"): hashlib.sha512,
}
SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")


def read_ber(data: bytes, at: int, levels: int = 16) -> tuple[int, bytes, int]:
    """The BER value that begins there (X.690, section 8.1): tag, content, and where it ends."""
    if at + 2 > len(data) or not levels or data[at] & 31 == 31:
        raise Bad(NO_STAMP)
    tag, length, start = data[at], data[at + 1], at + 2
    if length == 128:  # it ends at two zero bytes
        end = start
        while data[end : end + 2] != b"\0\0":
            end = read_ber(data, end, levels - 1)[2]
        return tag, data[start:end], end + 2
    if length > 128:
        count = length - 128
        length, start = int.from_bytes(data[start : start + count], "big"), start + count
    if start + length > len(data):
        raise Bad(NO_STAMP)
    return tag, data[start : start + length], start + length


def read_parts(value: tuple[int, bytes], tag: int = 0x30) -> list[tuple[int, bytes]]:
    """What stands in a value, which has to have this tag (0x30: a sequence)."""
    parts, at = [], 0
    if value[0] != tag:
        raise Bad(NO_STAMP)
    while at < len(value[1]):
        number, content, at = read_ber(value[1], at)
        parts.append((number, content))
    return parts


NO_STAMP = "not an RFC 3161 response with a time-stamp"


def read_stamp(data: bytes) -> Stamp:
    """A TimeStampResp, down to the TSTInfo that the authority signed (sections 2.4.1 and 2.4.2).

    The signature is not checked here: that takes the certificates of authorities.
    """
    tag, content, end = read_ber(data, 0)
    try:
        status, token = read_parts((tag, content))
        kind, tagged = read_parts(token)
        (signed,) = read_parts(tagged, 0xA0)
        info_kind, info_tagged = read_parts(read_parts(signed)[2])
        (octets,) = read_parts(info_tagged, 0xA0)
        if octets[0] == 0x24:  # in parts
            octets = (4, b"".join(part for _, part in read_parts(octets, 0x24)))
        info = read_parts(read_ber(octets[1], 0)[:2])
        algorithm, digest = read_parts(info[2])
        oid = read_parts(algorithm)[0]
        time = next(text for number, text in info[3:] if number == 0x18)
    except (ValueError, IndexError, StopIteration) as error:
        raise Bad(NO_STAMP) from error
    found = re.fullmatch(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d+)?Z", time)
    good = end == len(data) and read_parts(status)[:1] in ([(2, b"\0")], [(2, b"\1")])
    good = good and (kind[1], info_kind[1]) == (SIGNED_DATA, TST_INFO)
    if not good or found is None or (oid[0], digest[0]) != (6, 4):
        raise Bad(NO_STAMP)
    year, month, day, hour, minute, second, fraction = (
        (part or b"").decode() for part in found.groups()
    )
    when = f"{year}-{month}-{day}T{hour}:{minute}:{second}{fraction}Z"
    return Stamp(oid[1], digest[1], when)


# ---------------------------------------------------------------------------------------------
# Part 4. The container: a ZIP file in the one form that a dossier has.

FILES_MAX = 256
RECORD_NAME = re.compile(r"records/([a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25})\.json", re.ASCII)
ENDINGS = [".json", ".disclosures.json", ".tlog-proof"]
AFTER = ["dossier.pdf", "verify.py", "verify.html", "README.txt", "SHA256SUMS"]
FIRST_BEFORE = "record.json"  # the first file of a container of an earlier release
README = "a540dd0a3f5eafd0add7c98b8f600f8e4b46e40e9e40e0d5e8e0126b8d607c96"
OF_BEFORE = (
    "this container is a bundle, of an earlier release, which this release does not read. The "
    "verifier inside it can be whatever its sender put there: before you run it, compare its "
    "SHA-256 with spec/verifiers-before.sha256 of Countersign, or get the verifier of that release "
    "from the operator"
)
TIMESTAMP = re.compile(r"timestamps/[A-Za-z0-9._-]{1,80}\.tsr", re.ASCII)


def write_zip(files: Mapping[str, bytes]) -> bytes:
    """The ZIP file of these files: not compressed, dated 1980-01-01, nothing optional."""
    body, directory = b"", b""
    for name, data in files.items():
        label = name.encode()
        common = struct.pack(
            "<HHHHHIIIHH", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(label), 0
        )
        rest = struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, len(body))
        directory += b"PK\x01\x02\x14\x03" + common + rest + label
        body += b"PK\x03\x04" + common + label + data
    count = len(files)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def read_zip(data: bytes) -> dict[str, bytes]:
    """The files of a ZIP file. Written again from them, it has to be the same to the byte."""
    if len(data) > BYTES_MAX:
        raise Bad(f"a dossier has at most {BYTES_MAX} bytes")
    files: dict[str, bytes] = {}
    position = 0
    while data[position : position + 4] == b"PK\x03\x04" and len(files) < FILES_MAX:
        header = data[position : position + 30]
        if len(header) < 30:
            raise Bad("the ZIP file is cut short")
        size, label = struct.unpack("<IH", header[22:28])
        start = position + 30 + label
        name = data[position + 30 : start].decode("ascii", "replace")
        if name == FIRST_BEFORE and not files:
            raise NotCheckable(OF_BEFORE)
        if name in files:
            raise Bad("the ZIP file contains a name twice")
        files[name] = data[start : start + size]
        position = start + size
    if any(not name.isascii() for name in files) or not files or write_zip(files) != data:
        raise Bad(
            "the ZIP file does not have the format of a dossier; if it was unpacked and packed "
            "again, check the unpacked folder or ask for the original file"
        )
    return files


def read_folder(folder: Path) -> tuple[bytes, list[str]]:
    """A dossier that was unpacked, as the ZIP file that it was, and what else lies there.

    SHA256SUMS says in which order the files were. Pipes and devices are no files: reading them may
    never end.
    """
    found = {path.relative_to(folder).as_posix() for path in folder.iterdir() if path.is_file()}
    if not (folder / "records").is_dir():
        empty = f"{folder} does not contain an unpacked dossier"
        raise NotCheckable(OF_BEFORE if FIRST_BEFORE in found else empty)
    if "SHA256SUMS" not in found:
        raise Bad("the dossier lacks SHA256SUMS")
    for name in ("records", "timestamps"):
        if (folder / name).is_dir():
            found |= {f"{name}/{path.name}" for path in (folder / name).iterdir() if path.is_file()}
    listed = read_file(folder / "SHA256SUMS").decode("ascii", "replace").split("\n")
    order = dict.fromkeys([*(line[66:] for line in listed), "SHA256SUMS"])
    files: dict[str, bytes] = {}
    left = BYTES_MAX
    for name in order:
        if name in found:
            files[name] = read_file(folder / name, left)
            left -= len(files[name])
            if left < 0 or len(files) > FILES_MAX:
                raise Bad(f"a dossier has at most {BYTES_MAX} bytes in {FILES_MAX} files")
    return write_zip(files), sorted(found.difference(files))


def read_file(path: Path, most: int = BYTES_MAX) -> bytes:
    """The bytes of a file; one more than is taken is enough to refuse what is too large."""
    with path.open("rb") as file:
        return file.read(most + 1)


def check_names(files: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """Refuse missing, unknown and huge files; the identifiers and the names of time-stamps."""
    matches = [RECORD_NAME.fullmatch(name) for name in files]
    ids = [found[1] for found in matches if found]
    stamps = sorted(name for name in files if TIMESTAMP.fullmatch(name))
    notice = ["notice.json"] if any(id_.startswith("ack_") for id_ in ids) else []
    of_records = [f"records/{id_}{ending}" for id_ in ids for ending in ENDINGS]
    names = [*of_records, *notice, "policy.txt", *stamps, *AFTER]
    for name in names:
        if name not in files:
            raise Bad(f"the dossier lacks {name}")
    if not ids or list(files) != names:
        raise Bad("the dossier has unexpected files, no record, or another order")
    most = {**dict.fromkeys(stamps, 1_000_000), **dict.fromkeys(notice, 2_000_000)}
    most |= {f"records/{id_}.disclosures.json": 1_000_000 for id_ in ids}
    for name, limit in most.items():
        if len(files[name]) > limit:
            raise Bad(f"{name} has at most {limit} bytes")
    return ids, stamps


# ---------------------------------------------------------------------------------------------
# Part 5. The steps. The first that fails ends the verification.

STEPS = {
    "container": "form of the file",
    "signature": "signature of the checkpoint by a log of the policy",
    "quorum": "cosignatures that the policy requires",
    "record": "form of the record",
    "inclusion": "path from the record to the root of the checkpoint",
    "disclosures": "personal fields, bound by the record",
    "notice": "notice, bound by the record, and initials for each line",
    "joins": "by what the records belong to one order",
    "timestamps": "time-stamps of the checkpoint",
    "files": "files as listed in SHA256SUMS",
}


class Step(NamedTuple):
    """The outcome of a step, and what there is to say.

    It is `ok`, `FAILED`, `UNCHECKED` (it matters, and cannot be checked here) or `not checked`.
    """

    name: str
    result: str
    detail: str


class _Stop(Exception):
    """A step failed."""


def unknown_signer(_token: bytes, _over: bytes) -> str:
    """Who signed a time-stamp is not checked here."""
    return "its signer was not checked"


class Means(NamedTuple):
    """What a program that has more than Python can put in the place of what this file brings."""

    verifies: Callable[[Key, bytes, bytes], bool] = Key.verifies
    signer: Callable[[bytes, bytes], str] = unknown_signer  # of a time-stamp, or `Bad`


OWN_MEANS = Means()


class Report:
    """The outcome of all steps."""

    def __init__(self, means: Means = OWN_MEANS) -> None:
        self.means = means
        self.packed = b""  # of a dossier, its ZIP file
        self.order: Order | None = None  # of a dossier
        self.key: Key | None = None  # of the log, which signed the checkpoint
        self.steps: list[Step] = []
        self.facts: dict[str, Any] = {}
        self.note = b""  # of a dossier, its signed checkpoint
        self.stamps: dict[str, str] = {}  # time-stamps that show when the checkpoint was there
        self.stamped: list[str] = []  # the times in those that are about the checkpoint itself
        self.seen: list[str] = []  # the times of the cosignatures
        self.record: dict[str, Any] = {}
        self.notice: dict[str, Any] = {}
        self.shown: dict[str, Any] = {}
        self.remarks: list[str] = []  # what is odd, and no failure

    @property
    def failed(self) -> Step | None:
        """The step that failed, if one did; else the one that could not be checked."""
        found = [s for result in ("FAILED", "UNCHECKED") for s in self.steps if s.result == result]
        return found[0] if found else None

    @property
    def ok(self) -> bool:
        """Whether every step was gone through and none failed; by whose key, `outcome` says."""
        return self.outcome in {"ok", "consistent"}

    @property
    def outcome(self) -> str:
        """What verifying came to: `ok`, `consistent`, `unchecked` or `failed`."""
        results = {step.result for step in self.steps}
        if "FAILED" in results or len(self.steps) < len(STEPS):
            return "failed"
        if "UNCHECKED" in results:
            return "unchecked"
        return "ok" if self.facts["policy"] == "given" else "consistent"

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Do a step; what is said of it goes into the list."""
        said: list[str] = []
        try:
            yield said
        except (NotCheckable, OSError) as error:
            unread = "" if isinstance(error, NotCheckable) else "a file cannot be read: "
            self.steps.append(Step(name, "UNCHECKED", f"{unread}{error}"))
            if name in {"container", "signature"}:  # without them there is nothing to go on from
                raise _Stop from error
            return
        except Exception as error:
            # Whatever goes wrong, wrong is what it is: never a pass, never a crash.
            why = str(error) if isinstance(error, Bad) else f"unreadable ({type(error).__name__})"
            self.steps.append(Step(name, "FAILED", why))
            raise _Stop from error
        self.steps.append(Step(name, "ok", "; ".join(said)))

    def line(self) -> str:
        """The outcome in one line."""
        failed = self.failed
        if failed is not None:
            number = list(STEPS).index(failed.name) + 1
            what = "FAILED" if failed.result == "FAILED" else "COULD NOT BE CHECKED"
            return f"{what} at step {number} ({failed.name}): {failed.detail}"
        facts = self.facts
        text = "OK" if facts["policy"] == "given" else "CONSISTENT, KEY NOT CHECKED"
        if self.order:
            others = len(self.order.records) - 1
            text += f"  one order, {self.record['id']}"
            text += f" with {several(others, 'another record', 'other records')}" if others else ""
            text += f", sealed in {facts['log']}, "
        else:
            text += f"  {self.record['id']} sealed in {facts['log']} as entry {facts['index']}, "
        text += f"checkpoint of size {facts['size']}"
        if facts["policy"] == "own":
            text += (
                f" (checked against the key that came in this dossier, {facts['key_fingerprint']})"
            )
        if self.order and self.order.missing:
            text += f"; missing: {len(self.order.missing)}"
        if self.remarks:
            text += f"; remarks: {len(self.remarks)}"
        return f"{text}; {self.rests_on()}"

    def rests_on(self) -> str:
        """The support for the checkpoint and its time other than the log's signature."""
        facts = self.facts
        by = ", ".join(cosigned["name"] for cosigned in facts["cosigned"])
        stamps = len(self.stamps)
        if not by and not stamps:
            return "no witness, no time-stamp: only the operator's clock shows the time"
        quorum = f"quorum {facts['quorum']}" if facts["quorum"] else "no quorum required"
        return f"cosigned by {by or 'no witness'} ({quorum}), {stamps} time-stamp(s)"


Read = Callable[[], tuple[bytes, list[str]]]


def verify_bytes(data: bytes, policy: Policy | None = None, means: Means = OWN_MEANS) -> Report:
    """Check a dossier, or a proof alone. Never raises, whatever the bytes are."""
    if data[:2] == b"PK":
        return _verify(lambda run: _dossier_steps(run, lambda: (data, []), policy), means)
    return _verify(lambda run: _proof_steps(run, data, policy), means)


def verify_folder(folder: Path, policy: Policy | None = None, means: Means = OWN_MEANS) -> Report:
    """Check a dossier that was unpacked. Never raises, whatever is there."""
    return _verify(lambda run: _dossier_steps(run, lambda: read_folder(folder), policy), means)


def _verify(steps: Callable[[Report], None], means: Means = OWN_MEANS) -> Report:
    report = Report(means)
    with suppress(_Stop):
        steps(report)
    why = "an earlier step failed" if report.failed else "a proof alone does not contain this"
    for name in list(STEPS)[len(report.steps) :]:
        report.steps.append(Step(name, "not checked", why))
    return report


def _proof_steps(report: Report, data: bytes, policy: Policy | None) -> None:
    facts = report.facts
    with report.step("container"):
        proof = read_proof(data)
        text, signatures = read_note(proof.note)
        checkpoint = read_checkpoint(text)

    _signed_steps(report, policy, None, text, signatures)
    with report.step("record") as say:
        record = report.record = check_record(proof.record, checkpoint.origin)
        facts["record_sha256"] = sha256(proof.record).hex()
        say.append(f"{record['type']} {record['id']}, SHA-256 {facts['record_sha256']}")
        binding = record.get("binding")
        if record["type"] == "verification" and isinstance(binding, str) and binding in BINDINGS:
            say.append(f"no new check, the buyer was known by {BINDINGS[binding]}")
        if record["mode"] == "test":
            say.append("TEST mode: it proves nothing about a sale")

    with report.step("inclusion") as say:
        leaf = leaf_of(checkpoint.origin, proof.record)
        if root_from(proof.position, checkpoint.size, leaf, proof.path) != checkpoint.root:
            raise Bad("the path does not lead to the root that the log signed")
        facts["index"] = proof.position
        say.append(f"entry {proof.position} of {checkpoint.size}")
    report.remarks = list(remarks_of(record, {}))


def _signed_steps(
    report: Report,
    policy: Policy | None,
    own: Policy | None,
    text: bytes,
    signatures: Sequence[Signature],
) -> None:
    """The two steps about the signatures of the checkpoint."""
    facts, checkpoint = report.facts, read_checkpoint(text)
    with report.step("signature") as say:
        facts["policy"] = "given"
        if policy is None:
            if own is None:
                raise Bad("a proof alone needs a policy to be checked against: --policy FILE")
            facts["policy"], policy = "own", own
        verifies = report.means.verifies
        keys = {*policy.logs, *policy.witnesses.values()}
        cosigned, unchecked, others = check_signatures(keys, text, signatures, verifies)
        report.key = log = check_log(policy, checkpoint.origin, set(cosigned), unchecked)
        facts["log"], facts["size"] = checkpoint.origin, checkpoint.size
        facts["key_fingerprint"] = log.fingerprint
        say.append(f"{checkpoint.origin}, key {log.fingerprint}")
        if facts["policy"] == "own":
            say.append("this key came in this dossier")
        if others:
            say.append(f"{others} signature(s) by keys outside of the policy not checked")

    with report.step("quorum") as say:
        present = {name: cosigned[key] for name, key in policy.witnesses.items() if key in cosigned}
        facts["cosigned"] = [{"name": name, "time": time} for name, time in present.items()]
        report.seen = [date_of(time) for time in present.values()]
        facts["quorum"] = None if policy.quorum == "none" else policy.quorum
        check_quorum(policy, set(present), unchecked)
        say.append("no witness required" if policy.quorum == "none" else f"quorum {policy.quorum}")
        say += [f"cosigned by {name} at {date_of(time)}" for name, time in present.items()]


def are_texts(value: object) -> bool:
    """Whether this is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def check_signatures(
    trusted: Iterable[Key],
    text: bytes,
    signatures: Sequence[Signature],
    verifies: Callable[[Key, bytes, bytes], bool] = Key.verifies,
) -> tuple[dict[Key, int], set[Key], int]:
    """The trusted keys that signed, with the time of a cosignature.

    A signature by a trusted key that is wrong is refused, not skipped, also a second one. One by a
    kind of key that cannot be checked here counts for nothing: second are the keys that have one,
    third how many are by others.
    """
    known: dict[tuple[str, bytes], list[Key]] = {}
    for key in trusted:
        known.setdefault((key.name, key.key_id), []).append(key)
    signed: dict[Key, int] = {}
    unchecked: set[Key] = set()
    others = 0
    for line in signatures:
        named = known.get((line.name, line.key_id), [])
        keys = [key for key in named if key.checkable]
        unchecked.update(key for key in named if not key.checkable)
        if len(keys) > 1:
            raise Bad(f"two keys go by {line.name}+{line.key_id.hex()}")
        others += not keys
        for key in keys:
            if not verifies(key, text, line.signature):
                raise Bad(f"the signature by {line.name} is wrong")
            signed.setdefault(key, int.from_bytes(line.signature[:8], "big"))
    return signed, unchecked, others


def check_log(policy: Policy, origin: str, signed: set[Key], unchecked: set[Key]) -> Key:
    """The key by which the log of this origin signed; refuses if none of the policy did."""
    own = [key for key in policy.logs if key.name == origin]
    for key in own:
        if key in signed:
            return key
    if unchecked.intersection(own):
        raise NotCheckable("the log signed with an unknown kind of key")
    known = "" if own else ", which is not one of its logs"
    if "/v1/log/test/" in origin:
        known = ", a test log: is this the live policy?"
    raise Bad(f"no log of the policy signed for {origin}{known}")


def check_quorum(policy: Policy, present: set[str], unchecked: set[Key]) -> None:
    """Refuse if the witnesses that cosigned do not make the quorum."""

    def met(witnesses: set[str]) -> bool:
        fulfilled = {"none", *witnesses}
        for name, (needed, members) in policy.groups.items():
            if len(fulfilled.intersection(members)) >= needed:
                fulfilled.add(name)
        return policy.quorum in fulfilled

    if met(present):
        return
    found = ", ".join(sorted(present)) or "no witness"
    why = f"the policy requires {policy.quorum}; cosigned by: {found}"
    unknown = [name for name, key in policy.witnesses.items() if key in unchecked]
    if not met(present.union(unknown)):
        raise Bad(why)
    why += "; signed by a kind of key that cannot be checked here: "
    raise NotCheckable(why + ", ".join(unknown))


def date_of(time: int) -> str:
    """When a witness signed; who holds its key may sign any number, far beyond the year 9999."""
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time)
    except OverflowError:
        return f"{time} (Unix time), which is not a valid date"
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def check_stamps(
    stamps: Mapping[str, bytes],
    over: bytes,
    signer: Callable[[bytes, bytes], str] = unknown_signer,
) -> tuple[list[str], dict[str, str], list[str]]:
    """What time-stamps say, each of which is about these bytes or renews another of them.

    And by name the times in those that show when these bytes were there: with an unknown hash it
    shows nothing, nor does one that renews it. And the times in those about the bytes themselves.
    """
    said, times = [], []
    renewing: dict[str, str] = {}
    at: dict[str, str] = {}
    # By the hash of what it would be about: the checkpoint, or the time-stamp of this name.
    abouts = {
        oid: {digest(data).digest(): name for name, data in {**stamps, "": over}.items()}
        for oid, digest in HASHES.items()
    }
    for name, data in stamps.items():
        stamp = read_stamp(data)
        if stamp.algorithm not in HASHES:
            said.append(f"{stamp.at}, not checked, since its hash algorithm is unknown")
            continue
        renewed = abouts[stamp.algorithm].get(stamp.digest)
        if renewed is None:
            raise Bad("a time-stamp does not cover the checkpoint")
        renewing[name], at[name] = renewed, stamp.at
        about = f"renewing {renewed}" if renewed else "for this checkpoint"
        times += [] if renewed else [re.sub(r"\.\d+Z", "Z", stamp.at)]
        said.append(f"{stamp.at}, {about}; {signer(data, stamps.get(renewed, over))}")
    counted = {""}
    more = counted
    while more:
        more = {name for name in renewing if renewing[name] in counted} - counted
        counted |= more
    return said, {name: time for name, time in at.items() if name in counted}, times


def check_record(data: bytes, origin: str) -> dict[str, Any]:
    """The members of a record, which has to be of the mode that the log's origin names."""
    record = read_json(data, "the record")
    if not isinstance(record, dict) or canonical(record) != data:
        raise Bad("the record is not an object in canonical JSON")
    if not isinstance(record.get("type"), str) or record["type"] not in RECORDS:
        raise Bad("a record of an unknown type")
    version = record.get("v")
    if version is True or version not in ([1, 2] if record["type"] in WITH_PARTIES else [1]):
        raise Bad("a record of an unknown version")
    named = ORIGIN.fullmatch(origin)
    if named is None or len(origin) > 300:
        raise Bad("the origin is not one of this service's logs")
    if record.get("mode") != named[1]:
        raise Bad(f"a record of another mode than the log {origin}")
    if not isinstance(record.get("id"), str) or not are_texts(record.get("_sd")):
        raise Bad("the record lacks members that every record has")
    if ID.fullmatch(record["id"]) is None:
        raise Bad("the record has an invalid identifier")
    if record["type"] == "acknowledgment":
        if not are_texts([record.get(name) for name in SAID]):
            raise Bad("the record lacks members that every acknowledgment has")
        check_words(record)
    check_parties(record)
    return record


# Records that have a version 2, which binds the records that describe the parties.
WITH_PARTIES = {"acknowledgment", "verification", "clearance", "fulfilment", "override"}


def parties_of(record: Mapping[str, Any]) -> list[str]:
    """The members by which a record has to bind the records of its parties."""
    if record["v"] == 1:
        return []
    names = ["operator_record", "account_record"]
    if record["type"] == "acknowledgment" and record["capture"] == "vendor_api":
        names.append("capture_process")
    return names


def check_parties(record: Mapping[str, Any]) -> None:
    """The members by which a record binds its parties, or describes one."""
    names, acknowledges = parties_of(record), record["type"] == "acknowledgment"
    # With the initials of a hosted session there is no process of the vendor's.
    odd = names and acknowledges and "capture_process" in {*record} - {*names}
    if odd or not all(name in record and is_digest_or_null(record[name]) for name in names):
        raise Bad("the record does not bind its parties")
    if record["type"] in PARTY and not PARTY[record["type"]](record):
        raise Bad("the record does not describe its party")


def is_digest_or_null(value: object) -> bool:
    """A SHA-256 in lower-case hexadecimal, or null."""
    return value is None or (
        isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
    )


# What the record of an acknowledgment, and a notice, need for their words to be shown.
SAID = ["account", "accepted_at", "capture", "credential", "notice_digest", "notice_id"]
SAID += ["notice_version", "notice_version_source"]
WORDS = ["id", "version", "title", "heading", "attestation_text"]
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
LAST = 0x10FFFF
MIDNIGHT = "2026-01-01T00:00:00.000Z"
INITIALS, INITIALS_MAX = "initials_per_line", 32
CAPTURES = {"vendor_api", "hosted"}
CREDENTIALS = {"secret_key", "restricted_key", "checkout_session"}


# Code points of which nothing is seen by itself (evidence-format, section 6): white space, control
# and format characters, default-ignorable ones, private use, noncharacters, combining marks, emoji
# modifiers, and three more. A fixed list: no version of Unicode changes a verdict.
BLANK = """
0-20 7f-a0 ad 300-36f 483-489 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 600-605 610-61a 61c 64b-65f 670
6d6-6dd 6df-6e4 6e7-6e8 6ea-6ed 70f 711 730-74a 7a6-7b0 7eb-7f3 7fd 816-819 81b-823 825-827
829-82d 859-85b 890-891 898-89f 8ca-903 93a-93c 93e-94f 951-957 962-963 981-983 9bc 9be-9c4
9c7-9c8 9cb-9cd 9d7 9e2-9e3 9fe a01-a03 a3c a3e-a42 a47-a48 a4b-a4d a51 a70-a71 a75 a81-a83 abc
abe-ac5 ac7-ac9 acb-acd ae2-ae3 afa-aff b01-b03 b3c b3e-b44 b47-b48 b4b-b4d b55-b57 b62-b63 b82
bbe-bc2 bc6-bc8 bca-bcd bd7 c00-c04 c3c c3e-c44 c46-c48 c4a-c4d c55-c56 c62-c63 c81-c83 cbc
cbe-cc4 cc6-cc8 cca-ccd cd5-cd6 ce2-ce3 d00-d03 d3b-d3c d3e-d44 d46-d48 d4a-d4d d57 d62-d63
d81-d83 dca dcf-dd4 dd6 dd8-ddf df2-df3 e31 e34-e3a e47-e4e eb1 eb4-ebc ec8-ecd f18-f19 f35 f37
f39 f3e-f3f f71-f84 f86-f87 f8d-f97 f99-fbc fc6 102b-103e 1056-1059 105e-1060 1062-1064
1067-106d 1071-1074 1082-108d 108f 109a-109d 115f-1160 135d-135f 1680 1712-1715 1732-1734
1752-1753 1772-1773 17b4-17d3 17dd 180b-180f 1885-1886 18a9 1920-192b 1930-193b 1a17-1a1b
1a55-1a5e 1a60-1a7c 1a7f 1ab0-1ace 1b00-1b04 1b34-1b44 1b6b-1b73 1b80-1b82 1ba1-1bad 1be6-1bf3
1c24-1c37 1cd0-1cd2 1cd4-1ce8 1ced 1cf4 1cf7-1cf9 1dc0-1dff 2000-200f 2028-202f 205f-206f
20d0-20f0 2800 2cef-2cf1 2d7f 2de0-2dff 3000 302a-302f 3099-309a 3164 a66f-a672 a674-a67d
a69e-a69f a6f0-a6f1 a802 a806 a80b a823-a827 a82c a880-a881 a8b4-a8c5 a8e0-a8f1 a8ff a926-a92d
a947-a953 a980-a983 a9b3-a9c0 a9e5 aa29-aa36 aa43 aa4c-aa4d aa7b-aa7d aab0 aab2-aab4 aab7-aab8
aabe-aabf aac1 aaeb-aaef aaf5-aaf6 abe3-abea abec-abed e000-f8ff fb1e fdd0-fdef fe00-fe0f
fe20-fe2f feff ffa0 fff0-fffc fffe-ffff 101fd 102e0 10376-1037a 10a01-10a03 10a05-10a06
10a0c-10a0f 10a38-10a3a 10a3f 10ae5-10ae6 10d24-10d27 10eab-10eac 10f46-10f50 10f82-10f85
11000-11002 11038-11046 11070 11073-11074 1107f-11082 110b0-110ba 110bd 110c2 110cd 11100-11102
11127-11134 11145-11146 11173 11180-11182 111b3-111c0 111c9-111cc 111ce-111cf 1122c-11237 1123e
112df-112ea 11300-11303 1133b-1133c 1133e-11344 11347-11348 1134b-1134d 11357 11362-11363
11366-1136c 11370-11374 11435-11446 1145e 114b0-114c3 115af-115b5 115b8-115c0 115dc-115dd
11630-11640 116ab-116b7 1171d-1172b 1182c-1183a 11930-11935 11937-11938 1193b-1193e 11940
11942-11943 119d1-119d7 119da-119e0 119e4 11a01-11a0a 11a33-11a39 11a3b-11a3e 11a47 11a51-11a5b
11a8a-11a99 11c2f-11c36 11c38-11c3f 11c92-11ca7 11ca9-11cb6 11d31-11d36 11d3a 11d3c-11d3d
11d3f-11d45 11d47 11d8a-11d8e 11d90-11d91 11d93-11d97 11ef3-11ef6 13430-13438 16af0-16af4
16b30-16b36 16f4f 16f51-16f87 16f8f-16f92 16fe4 16ff0-16ff1 1bc9d-1bc9e 1bca0-1bca3 1cf00-1cf2d
1cf30-1cf46 1d159 1d165-1d169 1d16d-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1da00-1da36
1da3b-1da6c 1da75 1da84 1da9b-1da9f 1daa1-1daaf 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024
1e026-1e02a 1e130-1e136 1e2ae 1e2ec-1e2ef 1e8d0-1e8d6 1e944-1e94a 1f3fb-1f3ff 1fffe-1ffff
2fffe-2ffff 3fffe-3ffff 4fffe-4ffff 5fffe-5ffff 6fffe-6ffff 7fffe-7ffff 8fffe-8ffff 9fffe-9ffff
afffe-affff bfffe-bffff cfffe-cffff dfffe-e0fff efffe-10ffff
"""


BLANKS = [[int(end, 16) for end in one.split("-")] for one in BLANK.split()]


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen."""
    return all(ord(c) <= BLANKS[bisect(BLANKS, [ord(c), LAST]) - 1][-1] for c in text)


def check_words(record: Mapping[str, Any]) -> None:
    """An acknowledgment says in words of the format how it came, and at times that there are."""
    if record["capture"] not in CAPTURES:
        raise Bad(f"captured in a way that the format does not know: {record['capture'][:40]}")
    if record["credential"] not in CREDENTIALS:
        raise Bad(f"a credential that the format does not know: {record['credential'][:40]}")
    if not is_time(record["accepted_at"]) or not is_time(record.get("test_clock", MIDNIGHT)):
        raise Bad("the record has no valid time of acceptance")


def read_disclosures(data: bytes, name: str) -> list[str]:
    """The encoded disclosures of a record, from the file of this name."""
    found: Any = read_json(data, name)
    if canonical(found) != data or not are_texts(found):
        raise Bad(f"{name} is not the canonical JSON of an array of strings")
    return list(found)


def read_disclosure(encoded: str) -> tuple[str, str, Any]:
    """Salt, name and value of an encoded disclosure (RFC 9901, section 4.2.1)."""
    found: Any = read_json(read_base64url(encoded), "a disclosure")
    if not isinstance(found, list) or len(found) != 3 or not are_texts(found[:2]):
        raise Bad("a disclosure is an array of salt, name and value")
    return found[0], found[1], found[2]


def check_disclosures(disclosures: Sequence[str], record: Mapping[str, Any]) -> dict[str, Any]:
    """The personal fields that are shown: each is bound by its salted digest (RFC 9901)."""
    if record.get("_sd_alg") != "sha-256":
        raise Bad("the record names an unknown algorithm")
    shown: dict[str, Any] = {}
    bound = set(record["_sd"])
    for encoded in disclosures:
        if base64url(sha256(encoded.encode())) not in bound:
            raise Bad("a disclosure is not one of the record's")
        salt, name, value = read_disclosure(encoded)
        if name in shown:
            raise Bad(f"{name} is disclosed twice")
        # What one reader might understand and another not is refused.
        canonical([salt, name])
        canonical(value)
        shown[name] = value
    check_fields(record["type"], shown)
    return shown


def check_fields(kind: str, shown: Mapping[str, Any]) -> None:
    """What the disclosures of a record of this type show has the right types."""
    if not are_texts(shown.get(INITIALS, [])):
        raise Bad("the initials are not a list of texts")
    if PROCESS in shown and not is_process(shown[PROCESS]):
        raise Bad("the process is malformed")
    fields = FIELDS.get(kind, {})
    for name, value in shown.items():
        if name in fields and not fields[name](value):
            raise Bad(f"{name} is malformed")


Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Within:
    """A check of a value that has members, or of one around such values: null, or an array."""

    check: Check
    members: Mapping[str, Check]

    def __call__(self, value: object) -> bool:
        """Whether the value passes."""
        return self.check(value)


@dataclass(frozen=True)
class Maybe:
    """The check of a member that may be missing."""

    check: Check

    def __call__(self, value: object) -> bool:
        """Whether the value passes, if it is there."""
        return self.check(value)


@dataclass(frozen=True)
class Word:
    """The check of a text that should be one of these words: another is no failure, but named."""

    words: Sequence[str]

    def __call__(self, value: object) -> bool:
        """Whether the value passes."""
        return isinstance(value, str)


def is_anything(_: object) -> bool:
    """Whatever it is: checked elsewhere, or not at all."""
    return True


def is_text(value: object) -> bool:
    """A string."""
    return isinstance(value, str)


def is_seen(value: object) -> bool:
    """A string of which something can be seen."""
    return isinstance(value, str) and not is_blank(value)


def is_time(value: object) -> bool:
    """A time in the form of `accepted_at`, which a calendar and a clock have."""
    if not isinstance(value, str) or INSTANT.fullmatch(value) is None:
        return False
    with suppress(ValueError):  # no 30 February, no second 60, no year 0
        datetime(*map(int, re.split("[^0-9]", value)[:6]), tzinfo=UTC)  # type: ignore[arg-type, misc]
        return True
    return False


def is_second(value: object) -> bool:
    """The same to the second, such as `2026-11-21T21:31:05Z`."""
    return isinstance(value, str) and value.endswith("Z") and is_time(in_full(value))


def in_full(second: str) -> str:
    """A time to the second, to the millisecond."""
    return second.removesuffix("Z") + ".000Z"


def is_count(value: object) -> bool:
    """An integer from 0; not `true`, which Python counts as 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_true_or_false(value: object) -> bool:
    """A boolean."""
    return isinstance(value, bool)


def members_of(check: Check) -> Mapping[str, Check]:
    """What a value that passes this check can have inside; nothing if no one looks there."""
    return check.members if isinstance(check, Within) else {}


def or_null(check: Check) -> Check:
    """Null, or what this check accepts."""
    return Within(lambda value: value is None or check(value), members_of(check))


def each(check: Check) -> Check:
    """An array, of elements that this check accepts."""
    return Within(lambda v: isinstance(v, list) and all(map(check, v)), members_of(check))


def having(**checks: Check) -> Within:
    """An object with these members; others are no failure."""

    def check_members(value: object) -> bool:
        return isinstance(value, dict) and all(
            check(value[name]) if name in value else isinstance(check, Maybe)
            for name, check in checks.items()
        )

    return Within(check_members, checks)


# What the records of parties have.
PARTICULARS = dict.fromkeys(["legal_name", "address", "licence", "contact"], or_null(is_text))
PARTY = {
    "operator": having(**PARTICULARS, previous=is_digest_or_null),
    "account": having(account=is_text, name=is_text, **PARTICULARS, previous=is_digest_or_null),
    "capture_process": having(
        account=is_text,
        statement=is_text,
        version=lambda value: is_count(value) and value != 0,
        previous=is_digest_or_null,
    ),
}
METHODS = {
    "typed": "typed: sent as text for this line",
    "adopted": "adopted: a request named this line and sent no initials, and got the first line's",
}
BINDINGS = {
    "none": "nothing",
    "link": "the link of the session, which the vendor had, too",
    "cookie": "a cookie that was set after an earlier identity check",
    "passkey": "a passkey",
    "identity_session": "an identity check in the same session",
}
EVENTS = {
    "published": "the notice was published",
    "reviewed": "the operator noted that the text was compared with the law",
    "enjoined": "the notice was stopped by a court",
    "reinstated": "the notice was brought back",
    "withdrawn": "the notice was withdrawn",
}


def known(words: Mapping[str, str], word: str) -> str:
    """What a word of the format means; an unknown one is called unknown."""
    return words.get(word, f"a word that this reader does not know: \u201c{word}\u201d")


# How a hosted acknowledgment was made.
PROCESS = "process"
is_process = having(
    checkout_session=is_text,
    surface=Word(["page", "component"]),
    origin=or_null(is_text),
    rendered_digest=or_null(is_text),
    locale=is_text,
    opened_at=is_time,
    lines=each(
        having(
            shown_at=is_time,
            initialed_at=is_time,
            changed_at=or_null(is_time),
            changes=is_count,
            method=Maybe(Word([*METHODS])),
        )
    ),
    reviewed_at=or_null(is_time),
    agreement=is_text,
    consent=is_text,
    script=or_null(is_true_or_false),
    viewport=or_null(having(width=is_count, height=is_count)),
    binding=Word([*BINDINGS]),
    verification=or_null(is_text),
    claimed=each(having(line=or_null(is_count), event=is_text, at=is_time)),
)
# From where an address or a user agent is known.
SENT: Mapping[str, Check] = {
    "source": or_null(is_text),
    "truncated": is_true_or_false,
    "initials_from": Maybe(each(or_null(is_text))),
}
# The disclosures of each type of record.
FIELDS: dict[str, Mapping[str, Check]] = {
    "acknowledgment": {
        INITIALS: each(is_text),
        "session_id": or_null(is_text),
        "cbid": or_null(is_text),
        "ip": having(**SENT, **dict.fromkeys(["ip", "peer_ip", "forwarded"], or_null(is_text))),
        "user_agent": having(**SENT, user_agent=or_null(is_text)),
        PROCESS: is_process,
        "order_reference": is_text,
    },
    "verification": {
        "cbid": or_null(is_text),
        "provider_identity_session_id": or_null(is_text),
        "result": having(status=is_text, reasons=each(is_text)),
        "evidence_sha256": or_null(is_text),
        "override": having(
            verification=is_text, document=is_text, reason=is_text, operator=is_text
        ),
    },
    "clearance": {
        "cbid": is_text,
        "session_id": is_text,
        "shipping": having(
            zip=is_text,
            address=or_null(having()),
            product_class=or_null(is_text),
            product_classes=Maybe(each(is_text)),
        ),
        "verification": or_null(is_text),
        "order_reference": is_text,
        "exemption": having(expires_on=Maybe(or_null(is_text))).check,
    },
    "fulfilment": {"carrier": or_null(is_text), "tracking_number": or_null(is_text)},
    "override": {
        "override": having(
            by=each(having(actor=is_text, reason=is_seen)), claimed_user=or_null(is_text)
        )
    },
}


def check_notice(
    data: bytes, record: Mapping[str, Any], shown: Mapping[str, Any]
) -> dict[str, Any]:
    """The notice, which has to be the one that the record names, line for line.

    If the initials or the process are shown, they have one entry for each line.
    """
    if sha256(data).hex() != record.get("notice_digest"):
        raise Bad("the notice is not the one that was acknowledged")
    notice: Any = read_json(data, "the notice")
    if not isinstance(notice, dict) or not isinstance(notice.get("bullets"), list):
        raise Bad("notice.json is not a notice")
    if canonical(notice) != data:
        raise Bad("the notice is not canonical JSON")
    lines = []
    for bullet in notice["bullets"]:
        if not isinstance(bullet, dict) or not are_texts([bullet.get("id"), bullet.get("text")]):
            raise Bad("the notice is not one")
        lines.append({"digest": sha256(bullet["text"].encode()).hex(), "id": bullet["id"]})
    if lines != record.get("bullets"):
        raise Bad("the lines of the notice are not those of the record")
    texts = [notice.get(name) for name in WORDS]
    if not lines or not are_texts(texts) or not are_texts(notice.get("text_gaps", [])):
        raise Bad("the notice lacks members that every notice has")
    if texts[:2] != [record["notice_id"], record["notice_version"]]:
        raise Bad("the notice has another id or version than the record says")
    if len(shown.get(INITIALS, lines)) != len(lines):
        raise Bad(f"there are {len(shown[INITIALS])} entries of initials for {len(lines)} lines")
    check_initials(shown.get(INITIALS, []), [line["id"] for line in lines])
    if PROCESS in shown and len(shown[PROCESS]["lines"]) != len(lines):
        raise Bad("the process does not have one entry for each line")
    return notice


def check_initials(typed: Sequence[str], ids: Sequence[str]) -> None:
    """The initials of each line, if they are shown, can be seen, and are not too long."""
    for initials, id_ in zip(typed, ids, strict=False):
        if is_blank(initials):
            raise Bad(f"the initials of line {id_} are blank")
        if len(initials) > INITIALS_MAX:
            raise Bad(f"the initials of line {id_} have more than {INITIALS_MAX} characters")


def own_lines(note: bytes, origin: str) -> bytes:
    """The checkpoint with the log's own signatures: what time-stamps are over."""
    body, _, lines = note.decode().rpartition("\n\n")
    own = [line for line in lines.split("\n") if line.startswith(f"\u2014 {origin} ")]
    return "\n".join([body, "", *own, ""]).encode()


# ---------------------------------------------------------------------------------------------
# Part 6. The dossier of an order: several records under one checkpoint.

# The types of the records, in their order, and how their identifiers begin.
PREFIXES = {
    "operator": "rec",
    "account": "rec",
    "capture_process": "rec",
    "notice_event": "rec",
    "acknowledgment": "ack",
    "verification": "ver",
    "clearance": "clr",
    "fulfilment": "ful",
    "override": "ovr",
    "erasure": "rec",
}


def _dossier_steps(report: Report, read: Read, policy: Policy | None) -> None:
    disclosures: dict[str, list[str]] = {}
    with report.step("container") as say:
        report.packed, unknown = read()
        files = read_zip(report.packed)
        ids, stamps = check_names(files)
        for id_ in ids:
            name = f"records/{id_}.disclosures.json"
            disclosures[id_] = read_disclosures(files[name], name)
        proofs = {id_: read_proof(files[f"records/{id_}.tlog-proof"]) for id_ in ids}
        note = report.note = proofs[ids[0]].note
        if any(proof.note != note for proof in proofs.values()):
            raise Bad("the proofs are not under the same checkpoint")
        text, signatures = read_note(note)
        checkpoint = read_checkpoint(text)
        own = read_policy(files["policy.txt"])
        if not files["policy.txt"].endswith(b"\n"):
            raise Bad("the last line of policy.txt does not end in a newline")
        if unknown:
            report.facts["other_files"] = unknown
            say.append(f"not part of the dossier, and not checked: {', '.join(unknown)}")

    _signed_steps(report, policy, own, text, signatures)
    records: list[Placed] = []
    with report.step("record") as say:
        for id_, proof in proofs.items():
            if files[f"records/{id_}.json"] != proof.record:
                raise Bad(f"the record {id_} is not that of its proof")
            record = check_record(proof.record, checkpoint.origin)
            check_members(id_, record)
            digest = sha256(proof.record).hex()
            records.append(Placed(id_, record["type"], record, digest, {}, proof.position))
            say.append(f"{record['type']} {id_}, SHA-256 {digest}")
        places = [(list(PREFIXES).index(one.type), one.position) for one in records]
        if any(one >= other for one, other in pairwise(places)):
            raise Bad("the records are not in the order of a dossier")
        if records[0].record["mode"] == "test":
            say.append("TEST mode: it proves nothing about a sale")

    with report.step("inclusion") as say:
        for id_, proof in proofs.items():
            leaf = leaf_of(checkpoint.origin, proof.record)
            if root_from(proof.position, checkpoint.size, leaf, proof.path) != checkpoint.root:
                raise Bad(f"the path of {id_} does not lead to the root that the log signed")
        say.append(f"entries {', '.join(str(one.position) for one in records)}")
        say.append(f"in a log of {checkpoint.size}")

    with report.step("disclosures") as say:
        for one in records:
            one.shown.update(check_disclosures(disclosures[one.id], one.record))
            say.append(f"{one.id} shows {', '.join(one.shown) or 'nothing'}")

    with report.step("notice") as say:
        for one in records:
            if one.type == "acknowledgment":
                report.notice = check_notice(files["notice.json"], one.record, one.shown)
                say.append(f"{one.record['notice_id']} {one.record['notice_version']}")

    with report.step("joins") as say:
        order = Order(records, report.notice)
        say.extend(order.joins)
        report.order, report.remarks = order, order.remarks
        report.record, report.shown = order.first.record, order.first.shown

    with report.step("timestamps") as say:
        tokens, over = {name: files[name] for name in stamps}, own_lines(note, checkpoint.origin)
        said, report.stamps, report.stamped = check_stamps(tokens, over, report.means.signer)
        report.facts["timestamps"] = said
        say.append("; ".join(said) or "none")

    with report.step("files"):
        if sha256(files["README.txt"]).hex() != README:
            raise Bad("README.txt is not the text that every dossier has")
        # All other files, in their order.
        listed = "".join(f"{sha256(files[n]).hex()}  {n}\n" for n in files if n != "SHA256SUMS")
        if listed.encode() != files["SHA256SUMS"]:
            raise Bad("SHA256SUMS does not match the files")


class Placed(NamedTuple):
    """A record of a dossier."""

    id: str
    type: str
    record: dict[str, Any]
    digest: str
    shown: dict[str, Any]
    position: int

    def field(self, name: str) -> str | None:
        """A personal field, if it is shown and a text."""
        value = self.shown.get(name)
        return value if isinstance(value, str) else None


# What each record can have (evidence-format, sections 4 and 7). An acknowledgment, the parties and
# the digests of parties are checked elsewhere, and some types are in no dossier.
EVERY = dict.fromkeys(["v", "type", "id", "mode", "nonce", "_sd", "_sd_alg"], is_anything)
NAMING = dict.fromkeys(["operator_record", "account_record"], Maybe(is_anything))


def record_of(*elsewhere: str, **checks: Check) -> Within:
    """The members of a record: these, those of every record, and those checked elsewhere."""
    others = dict.fromkeys(elsewhere, Maybe(is_anything))
    return having(**EVERY, **others, **checks)


# By whom a refusal was overridden.
OVERRIDDEN_BY = [
    "with an API key, for a user whom the vendor named",
    "by a person at the vendor",
    "by two people at the vendor",
]


def is_people(value: object) -> bool:
    """How many people did: none, where a key did."""
    return type(value) is int and value in range(3)


# The refusals that nobody overrides.
NEVER_OVERRIDDEN = {"notice_not_sufficient", "product_class_missing"}
# A notice that an order did not need, by an exemption of its rule.
WAIVED = having(
    notice_id=is_seen,
    version=is_seen,
    required=lambda value: value == "not_required",
    exemption=having(kind=is_text, needs=each(is_text), waives=each(is_text), source=is_seen),
)
OF_ACCOUNT: Mapping[str, Check] = {"at": is_time, "account": is_text}
RECORDS: dict[str, Within] = {
    "acknowledgment": record_of(*SAID, *NAMING, "bullets", "test_clock", "capture_process"),
    **{kind: record_of(*party.members, at=is_time) for kind, party in PARTY.items()},
    "notice_event": record_of(
        at=is_time,
        event=Word([*EVENTS]),
        notice_id=is_text,
        notice_version=is_text,
        notice_digest=is_text,
    ),
    "verification": record_of(
        *NAMING,
        **OF_ACCOUNT,
        provider=is_text,
        simulated=is_true_or_false,
        binding=Maybe(Word(["passkey", "cookie"])),
        endpoint=Maybe(is_text),
        override=Maybe(is_text),
        test_helper=Maybe(is_true_or_false),
        test_clock=Maybe(is_time),
    ),
    "clearance": record_of(
        *NAMING,
        **OF_ACCOUNT,
        ack_id=or_null(is_text),
        cleared=is_true_or_false,
        reasons=each(is_text),
        obligations=each(is_anything),
        expires_at=or_null(is_second),
        order_named=Maybe(is_true_or_false),
        exempt_from=Maybe(each(WAIVED.check)),
        paid_at=Maybe(is_second),
        test_clock=Maybe(is_time),
    ),
    "fulfilment": record_of(
        *NAMING,
        **OF_ACCOUNT,
        clearance_id=is_text,
        adult_signature_obtained=or_null(is_true_or_false),
        shipped_at=or_null(is_second),
        delivered_at=or_null(is_second),
        paid_at=Maybe(is_second),
        order_of_events_confirmed=Maybe(is_true_or_false),
        corrects=Maybe(is_text),
    ),
    "override": record_of(
        *NAMING,
        **OF_ACCOUNT,
        clearance_id=is_text,
        people=is_people,
        reasons=each(is_text),
        obligations=each(is_anything),
    ),
    "erasure": record_of(at=is_time, account=is_text, erased=each(is_text), reason=is_text),
    "key_rotation": record_of(
        *("at", "log", "old_key", "new_key", "old_key_retires_at", "old_ml_dsa_key"),
        *("new_ml_dsa_key", "threshold", "approval"),
    ),
    "approvers": record_of("at", "log", "new_threshold", "approvers", "threshold", "approval"),
    "epoch": record_of(
        *("at", "previous_log", "previous_size", "previous_root", "previous_published", "reason")
    ),
    "recovery": record_of("at", "log", "published", "kept", "overruled", "reason"),
    "audit_head": record_of("at", "head"),
}
NOTICE = having(
    **dict.fromkeys(
        [
            *WORDS,
            *("source_law", "source_bill", "source_url", "jurisdiction", "language"),
            *("effective_from", "obligations", "retention_years", "editorial", "text_gaps"),
        ],
        is_anything,
    ),
    bullets=each(having(id=is_text, text=is_text)),
)


def check_members(id_: str, record: Mapping[str, Any]) -> None:
    """A record of a dossier has its own file, and what the words about it rest on."""
    kind = record["type"]
    if kind not in PREFIXES:
        raise Bad(f"a dossier has no record of the type {kind}")
    if record["id"] != id_ or id_[:3] != PREFIXES[kind]:
        raise Bad(f"{id_} is not the identifier of the record in this file")
    if not RECORDS[kind](record):
        raise Bad(f"{id_} lacks members that every {kind} has")


def check_decision(id_: str, record: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """A clearance was granted for no reason against it, for a time; or refused.

    If an exemption is shown, it is that of each rule by which a notice was not needed.
    """
    cleared, until, ack = record["cleared"], record["expires_at"], record["ack_id"]
    if cleared and record["reasons"]:
        raise Bad(f"{id_} is cleared, with reasons against it")
    if not cleared and (until is not None or record["obligations"]):
        raise Bad(f"{id_} is refused, with obligations or an end of its validity")
    if cleared and (until is None or in_full(until) <= record.get("test_clock", record["at"])):
        raise Bad(f"{id_} is cleared until no time after its decision")
    if "exempt_from" in record and not (cleared and ack is None):
        raise Bad(f"{id_} is exempt, and is refused or names an acknowledgment")
    waived = record.get("exempt_from", [])
    if cleared and not (waived if ack is None else ack[:3] == "ack" and ID.fullmatch(ack)):
        raise Bad(f"{id_} is cleared, by no acknowledgment and no exemption")
    rules = {one["notice_id"]: one["exemption"] for one in waived}
    if len(rules) < len(waived) or not all("notice" in rule["waives"] for rule in rules.values()):
        raise Bad(f"{id_} is exempt from a notice twice, or from one that no rule waives")
    for rule in rules.values() if "exemption" in shown else []:
        facts = all(is_seen(shown["exemption"].get(name)) for name in rule["needs"])
        if shown["exemption"].get("kind") != rule["kind"] or not facts:
            raise Bad(f"{id_} is exempt by another exemption than it shows")


def check_people(override: Placed) -> None:
    """Those who are shown to have overridden are as many as it says, and people or a key."""
    if "override" in override.shown:
        people, shown = override.record["people"], override.shown["override"]
        actors = [by["actor"] for by in shown["by"]]
        kinds = {ID.fullmatch(actor) and actor[:3] for actor in actors}
        fits = kinds == {"per"} if people else kinds == {"key"} and is_seen(shown["claimed_user"])
        if not (fits and len({*actors}) == len(actors) == max(people, 1)):
            raise Bad(f"{override.id} is not by whom it shows")


def time_in(id_: str) -> int:
    """The Unix milliseconds in an identifier (UUIDv7, RFC 9562)."""
    number = 0
    for character in id_[4:]:
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(character)
    return number >> 80


def remarks_of(record: Mapping[str, Any], shown: Mapping[str, Any]) -> Iterator[str]:
    """What is odd in a record and its disclosures, and no failure."""
    id_, kind = record["id"], record["type"]
    name = "accepted_at" if kind == "acknowledgment" else "at"
    if is_time(record.get(name)):
        made, epoch = time_in(id_), datetime(1970, 1, 1, tzinfo=UTC)
        apart = (datetime.fromisoformat(record[name]) - epoch) // timedelta(milliseconds=1) - made
        # Only of an acknowledgment both always come from one reading of the clock.
        if abs(apart) >= (1 if kind == "acknowledgment" else 60_000):
            yield f"{name} of {id_} is {record[name]}, {apart} ms from the time in its identifier"
    unknown = list(unknown_in(record, RECORDS[kind]))
    fields = FIELDS.get(kind, {})
    for field, value in shown.items():
        if field not in fields:
            unknown.append(f"disclosure that this reader does not know: {field}")
        else:
            unknown += unknown_in(value, fields[field], f"{field}.")
    for one in dict.fromkeys(unknown):
        yield f"{id_} has a {one}"
    if record.get("cleared") is False and record.get("reasons") == []:
        yield f"{id_} is refused, and gives no reason"
    if "exempt_from" in record and "exemption" in shown:
        ended = shown["exemption"].get("expires_on")
        if ended and ended < record.get("test_clock", record["at"])[:10]:
            yield f"{id_} is exempt by a licence that had ended before the decision"
    if kind == "acknowledgment":
        if any("initials_from" in shown.get(name, {}) for name in ("ip", "user_agent")):
            yield f"{id_}: initials and agreement came from two clients"
        yield from _remarks_of_capture(record, shown.get(PROCESS))


def _remarks_of_capture(
    record: Mapping[str, Any], process: Mapping[str, Any] | None
) -> Iterator[str]:
    id_, hosted = record["id"], record["capture"] == "hosted"
    if hosted != (record["credential"] == "checkout_session"):
        yield f"{id_} is captured by {record['capture']}, with a {record['credential']}"
    if process is None:
        return
    if not hosted:
        yield f"{id_} is captured by {record['capture']}, and has a process"
    times = [process["opened_at"], process["reviewed_at"]]
    times += [line[name] for line in process["lines"] for name in ("shown_at", "initialed_at")]
    times += [line["changed_at"] for line in process["lines"]]
    times += [claim["at"] for claim in process["claimed"]]
    if max(time for time in times if time) > record.get("test_clock", record["accepted_at"]):
        yield f"{id_} has a time in its process that is after its acceptance"


def unknown_in(value: object, check: Check, within: str = "") -> Iterator[str]:
    """The members of a value, and its words, that are none of the format's."""
    check = check.check if isinstance(check, Maybe) else check
    inside = members_of(check)
    if isinstance(check, Word) and isinstance(value, str) and value not in check.words:
        yield f"word that this reader does not know: {within[:-1]} \u201c{value}\u201d"
    if isinstance(value, list):
        for item in value:
            yield from unknown_in(item, check, within)
    elif isinstance(value, dict) and inside:
        for name in sorted(value):
            if name in inside:
                yield from unknown_in(value[name], inside[name], f"{within}{name}.")
            else:
                yield f"member that this reader does not know: {within}{name}"


# Of the records of parties: what is said where there was none, and where it is not here.
UNDESCRIBED = {
    "operator_record": ("the operator had not described itself", "the operator's description"),
    "account_record": ("the vendor had not described itself", "the vendor's description"),
    "capture_process": (
        "the vendor had not described how it captures initials",
        "the vendor's description of how it captures initials",
    ),
}


def named_by(one: Placed) -> list[tuple[str, str | None]]:
    """The records of parties that a record names, by their digests."""
    return [(name, one.record[name]) for name in parties_of(one.record)]


SERVICE, SANDBOX = "the service's clock", "the sandbox's test clock"
VENDOR = "the vendor's report"


class Fact(NamedTuple):
    """Something that happened, by a time in a record (evidence-format, section 17.1)."""

    kind: str
    at: str  # as the record has it
    by: str  # whose word the time is
    id: str  # of the record
    what: str  # in words, with {} in place of the lines
    lines: tuple[int, ...] = ()  # counted from 1; none: it is not about lines

    @property
    def time(self) -> datetime:
        """When it was; a day begins at midnight in UTC."""
        return datetime.fromisoformat(self.at if "T" in self.at else f"{self.at}T00:00:00Z")

    @property
    def words(self) -> str:
        """What happened, in words."""
        if not self.lines:
            return self.what
        *others, last = map(str, self.lines)
        lines = f"lines {', '.join(others)} and {last}" if others else f"line {last}"
        return self.what.replace("{}", lines)


# What a record says that happened at its `at`.
RECORDED = {
    "operator": "the operator was described in the log",
    "account": "the vendor was described in the log",
    "capture_process": "the vendor's way of taking initials was described in the log",
    "verification": "an identity check had its result",
    "fulfilment": "the vendor reported on the fulfilment",
    "override": "the refusal was manually overridden",
    "erasure": "personal details were deleted",
}
# What a vendor reports with a time: as a fact, and in the verdict.
REPORTED = {
    "paid_at": ("the order was paid", "paid"),
    "shipped_at": ("the order was shipped", "shipped"),
    "delivered_at": ("the order was delivered", "delivered"),
}
PARCEL = {"carrier": "a carrier", "tracking_number": "a tracking number"}
SIGNED, CONFIRMED = "adult_signature_obtained", "order_of_events_confirmed"
OF_LINES = {
    "served": "the service served {}",
    "received": "initials for {} were received",
    "adopted": "initials for {} were taken from the first line",
    "changed": "other initials for {} were received",
}


def facts_of(records: Sequence[Placed], notice: Mapping[str, Any]) -> list[Fact]:
    """All that the records date, the earliest first; at equal times in their order."""
    facts = [fact for one in records for fact in _facts_of(one, records, notice)]
    return sorted(facts, key=lambda fact: fact.time)


def _facts_of(one: Placed, records: Sequence[Placed], notice: Mapping[str, Any]) -> Iterator[Fact]:
    record, kind, what = one.record, one.type, RECORDED.get(one.type, "")
    if kind == "acknowledgment":
        yield from _facts_of_initials(one, notice)
        return
    if kind == "notice_event":
        event, what = record["event"], known(EVENTS, record["event"])
        kind = "lifted" if is_lifted(one, records) else event if event in EVENTS else kind
    elif kind == "clearance":
        kind, what = "decided", f"the order was {'cleared' if record['cleared'] else 'refused'}"
    elif any(by.type == "clearance" and by.field("verification") == one.id for by in records):
        kind = "checked"
    yield Fact(kind, record["at"], SERVICE, one.id, what)
    for name, (did, _) in REPORTED.items() if one in counted(records) else ():
        # The report of a payment is of nothing else.
        if record.get(name) and (name == "paid_at" or "paid_at" not in record):
            yield Fact(name, record[name], VENDOR, one.id, did)


def _facts_of_initials(one: Placed, notice: Mapping[str, Any]) -> Iterator[Fact]:
    record, day = one.record, notice.get("effective_from", "")
    # By the clock of a sandbox the notice can be in force earlier.
    if "test_clock" not in record and is_time(f"{day}T00:00:00.000Z"):
        yield Fact("effective_from", day, "the notice", one.id, "the notice came into force")
    if PROCESS in one.shown:
        process, by = one.shown[PROCESS], SANDBOX if "test_clock" in record else SERVICE
        yield Fact("opened", process["opened_at"], by, one.id, "the notice was first served")
        found: dict[tuple[str, str], list[int]] = {}
        for number, line in enumerate(process["lines"], 1):
            taken, changed = line.get("method") == "adopted", line["changed_at"]
            first = "adopted" if taken and not changed else "received"
            times = {"served": line["shown_at"], first: line["initialed_at"]}
            times |= {"adopted" if taken else "changed": changed} if changed else {}
            for pair in times.items():
                found.setdefault(pair, []).append(number)
        for (kind, at), lines in found.items():
            yield Fact(kind, at, by, one.id, OF_LINES[kind], tuple(lines))
        if process["reviewed_at"]:
            yield Fact("reread", process["reviewed_at"], by, one.id, "the review step was served")
    yield Fact("accepted", record["accepted_at"], SERVICE, one.id, "the initials were accepted")


def is_lifted(event: Placed, records: Sequence[Placed]) -> bool:
    """Whether a court's stop had ended before the initials: a later event brought it back."""
    accepted = [one.record["accepted_at"] for one in records if one.type == "acknowledgment"]
    return event.record["event"] == "enjoined" and any(
        one.position > event.position and one.record["at"] <= accepted[0]
        for one in records
        if one.type == "notice_event" and one.record["event"] == "reinstated"
    )


def counted(records: Sequence[Placed]) -> list[Placed]:
    """The vendor's reports that no later one corrects."""
    reports = [one for one in records if one.type == "fulfilment"]
    return [
        one
        for after, one in enumerate(reports, 1)
        if all(later.record.get("corrects") != one.id for later in reports[after:])
    ]


# Of two facts the second is not earlier than the first, but for as much as clocks differ: the
# number of the rule, both facts, that time, and the line of the first fact (0: as the second's).
ZONES, CLOCKS, REPORTS = timedelta(hours=14), timedelta(minutes=1), timedelta(minutes=5)
RULES = [
    (1, "effective_from", "accepted", ZONES, 0),
    (1, "accepted", "withdrawn", CLOCKS, 0),
    (1, "accepted", "enjoined", CLOCKS, 0),
    (2, "served", "received", CLOCKS, 0),
    (2, "served", "adopted", CLOCKS, 0),
    (2, "received", "changed", CLOCKS, 0),
    (2, "received", "adopted", CLOCKS, 0),
    (3, "received", "adopted", CLOCKS, 1),
    (4, "accepted", "decided", CLOCKS, 0),
    (4, "checked", "decided", CLOCKS, 0),
    (4, "decided", "override", CLOCKS, 0),
    (5, "decided", "shipped_at", REPORTS, 0),
    (5, "decided", "delivered_at", REPORTS, 0),
    (6, "shipped_at", "delivered_at", REPORTS, 0),
]
# The first fact of a rule, as what came too late.
BEFORE = {
    "effective_from": "the notice came into force",
    "accepted": "the initials were accepted",
    "served": "the service served that",
    "received": "the first ones were received",
    "decided": "the decision on it",
    "checked": "the identity check that the decision relied on",
    "shipped_at": "it was shipped",
}


class Break(NamedTuple):
    """What breaks a rule: its number, and a sentence in which facts stand for their times."""

    rule: int
    parts: list[str | Fact]

    def said(self, on: Callable[[str], str]) -> str:
        """The sentence, with the times in these words."""
        return "".join(part if isinstance(part, str) else on(part.at) for part in self.parts)


class Order:
    """The records of one order: what joins them, and what is missing. `Bad` if it is not one."""

    def __init__(self, records: list[Placed], notice: Mapping[str, Any]) -> None:
        def only(kind: str) -> Placed | None:
            found = [one for one in records if one.type == kind]
            if len(found) > 1:
                raise Bad(f"a dossier has one {kind} at most")
            return found[0] if found else None

        self.records, self.notice = records, notice
        self.acknowledgment, self.clearance = only("acknowledgment"), only("clearance")
        only("override")
        first = self.acknowledgment or self.clearance
        if first is None:
            raise Bad("a dossier has an acknowledgment or a clearance")
        self.first = first
        self.named = {pair for one in records for pair in named_by(one)}
        self.joins = list(self._joins())
        missing = list(self._missing())
        self.missing = [full for full, _ in missing]
        self.missing_words = [words for _, words in missing]
        self.facts = facts_of(records, notice)
        self.broken = sorted(self._broken(), key=lambda one: one.rule)
        odd = (f"{one.said(lambda at: f'at {at}')} (rule {one.rule})" for one in self.broken)
        self.remarks = [*self._remarks(), *odd]

    def of(self, kind: str) -> list[Placed]:
        """The records of this type."""
        return [one for one in self.records if one.type == kind]

    def _joins(self) -> Iterator[str]:
        account = self.first.record["account"]
        for one in self.records:
            if one.record.get("account", account) != account:
                raise Bad(f"{one.id} is of another account")
        ack, clearance = self.acknowledgment, self.clearance
        if ack and clearance:
            if clearance.record["ack_id"] != ack.id:
                raise Bad(f"{clearance.id} is not about {ack.id}")
            yield f"{clearance.id} names {ack.id} as its acknowledgment"
            yield from self._same(ack, clearance)
        if clearance:
            check_decision(clearance.id, clearance.record, clearance.shown)
        for one in self.records:
            if one.type not in {"acknowledgment", "clearance"}:
                yield f"{one.id} ({one.type}) {self._by(one)}"

    def _same(self, ack: Placed, clearance: Placed) -> Iterator[str]:
        for name in ("cbid", "session_id", "order_reference"):
            given, decided = ack.field(name), clearance.field(name)
            if given is None or decided is None:
                continue
            if given == decided:
                yield f"{ack.id} and {clearance.id} have the same {name}"
            elif name != "cbid" and clearance.record["cleared"]:
                raise Bad(f"{clearance.id} is cleared for another {name}")
            else:  # a buyer can have several identifiers, and an order can be refused for it
                yield f"{ack.id} and {clearance.id} have a DIFFERENT {name}"

    def _by(self, one: Placed) -> str:
        """By what a record belongs to the others."""
        record, ack, clearance = one.record, self.acknowledgment, self.clearance
        notice = ack.record["notice_digest"] if ack else None
        if one.type == "verification":
            return self._checked(one)
        if one.type == "fulfilment" and clearance and record["clearance_id"] == clearance.id:
            also = f", and corrects {record['corrects']}" if "corrects" in record else ""
            return f"names {clearance.id} as its clearance{also}"
        if one.type == "override" and clearance and record["clearance_id"] == clearance.id:
            if clearance.record["cleared"] or clearance.record["reasons"] != record["reasons"]:
                raise Bad(f"{clearance.id} is not the refusal that {one.id} overrides")
            if not record["obligations"] or not NEVER_OVERRIDDEN.isdisjoint(record["reasons"]):
                raise Bad(f"{one.id} overrides what cannot be, or without obligations")
            check_people(one)
            return f"is a manual override of the refusal {clearance.id}, and clears nothing"
        if one.type == "notice_event" and record["notice_digest"] == notice:
            return f"is about the notice that was acknowledged, {record['event']}"
        if one.type == "erasure":
            erased = [other.id for other in self.records if other.id in record["erased"]]
            if erased:
                return f"says that personal fields of {', '.join(erased)} were deleted"
        name = {"operator": "operator_record", "account": "account_record"}.get(one.type, one.type)
        if (name, one.digest) in self.named:
            return f"is named, by its digest, as {name}"
        raise Bad(f"nothing joins {one.id} ({one.type}) to the other records")

    def _checked(self, one: Placed) -> str:
        """By what an identity check belongs to the order."""
        ack, clearance = self.acknowledgment, self.clearance
        if clearance and clearance.field("verification") == one.id:
            return f"is named by {clearance.id} as the check that it relied on"
        if ack and PROCESS in ack.shown and ack.shown[PROCESS]["verification"] == one.id:
            return f"is named by {ack.id} as the check in the same session"
        cbid = one.field("cbid")
        # A buyer has checks for other orders too: this one has to be the only check.
        only = [other.id for other in self.records if other.type == "verification"] == [one.id]
        if only and cbid is not None and (clearance is None or clearance.record["v"] == 1):
            for other in (ack, clearance):
                if other and other.field("cbid") == cbid:
                    return f"is a check of the buyer cbid of {other.id}"
        raise Bad(f"nothing joins {one.id} ({one.type}) to the other records")

    def _missing(self) -> Iterator[tuple[str, str]]:
        """What is missing, in full, and in the words of the verdict."""
        kinds = {one.type for one in self.records}
        ack, clearance = self.acknowledgment, self.clearance
        if clearance and not ack and "exempt_from" not in clearance.record:
            named = clearance.record["ack_id"]
            full = f"the acknowledgment {named}" if named else "an acknowledgment: none was named"
            yield full, "an acknowledgment of the notice"
        if not clearance:
            yield "a clearance", "a decision on the order"
        if "verification" not in kinds:
            yield f"an identity check{self._why_no_check()}", "an identity check"
        elif self._named_check():
            named = self._named_check()
            full = f"the identity check {named}, on which the clearance relied: another one is here"
            yield full, "the identity check that the decision relied on"
        yield from self._missing_of_reports()
        if ack and "notice_event" not in kinds:
            yield "events of the notice, such as its review", REVIEW
        yield from self._missing_of_records()

    def _missing_of_reports(self) -> Iterator[tuple[str, str]]:
        reports = [one.record for one in self.reports]
        if self.clearance and self.clearance.record["cleared"] and not reports:
            yield "a report of fulfilment", "a report of shipment"
        if reports and all(report["shipped_at"] is None for report in reports):
            yield "the time of the shipment", "the time of shipment"
        if reports and all(report["delivered_at"] is None for report in reports):
            yield "a report of the delivery", "a report of delivery"
        if reports and self.is_unsigned:
            words = "a report of the signature of an adult, which the decision requires"
            yield words, words
        here = {one.id for one in self.records}
        for one in self.records:
            if one.record.get("corrects", one.id) not in here:
                full = f"the report {one.record['corrects']}, which {one.id} corrects"
                yield full, "a report that a later one corrects"

    def _missing_of_records(self) -> Iterator[tuple[str, str]]:
        """The same of single records: what is equal of several is one line."""
        here = {one.digest for one in self.records}
        erased = {
            id_ for one in self.records if one.type == "erasure" for id_ in one.record["erased"]
        }
        found: dict[tuple[str, str, str], list[str]] = {}
        for one in self.records:
            for name, digest in named_by(one):
                if digest is None:
                    later = any((name, other) in self.named for other in here)
                    words = f"{UNDESCRIBED[name][0]}{' at first' if later else ''}"
                    found.setdefault((name, "there was none", words), []).append(one.id)
                elif digest not in here:
                    found.setdefault((name, digest, UNDESCRIBED[name][1]), []).append(one.id)
            if one in (self.acknowledgment, self.clearance) and one.record["v"] == 1:
                key = ("operator and account", "a record of version 1 names none")
                found.setdefault((*key, "descriptions of operator and vendor"), []).append(one.id)
        for one in self.records:
            hidden = len(set(one.record["_sd"])) - len(one.shown)
            if hidden:
                why = "erased" if one.id in erased and not one.shown else "withheld or erased"
                key = ("personal fields", f"{hidden} {why}")
                found.setdefault((*key, f"personal details, {why}"), []).append(one.id)
        for (name, why, words), ids in found.items():
            yield f"{name} of {', '.join(ids)}: {why}", words

    def _remarks(self) -> Iterator[str]:
        """What is odd, and no failure."""
        for one in self.records:
            yield from remarks_of(one.record, one.shown)
        for what in dict.fromkeys(unknown_in(self.notice, NOTICE)):
            yield f"the notice has a {what}"
        ack, clearance = self.acknowledgment, self.clearance
        if clearance and ("exempt_from" in clearance.record or self.of("override")):
            goods = clearance.shown.get("shipping", {})
            if "barrel" in [goods.get("product_class"), *goods.get("product_classes", [])]:
                yield f"{clearance.id} is about goods that are sold in person only"
        of_notice = ("notice_id", "notice_version")
        for one in self.records:
            if clearance and not clearance.record["cleared"] and one.type == "fulfilment":
                yield f"{one.id} is a report on an order that was refused"
            for other in (clearance, ack) if one.type == "verification" else ():
                buyers = {one.field("cbid"), other.field("cbid") if other else None} - {None}
                if other and len(buyers) > 1:
                    yield f"{one.id} and {other.id} have a DIFFERENT cbid"
            if ack and one.type == "notice_event":
                named, meant = (
                    " ".join(by.record[name] for name in of_notice) for by in (one, ack)
                )
                if named != meant:
                    yield f"{one.id} names the notice {named}, and {ack.id} {meant}"

    @property
    def reports(self) -> list[Placed]:
        """The vendor's reports that count, but for those of a payment."""
        return [one for one in counted(self.records) if "paid_at" not in one.record]

    @property
    def is_unsigned(self) -> bool:
        """Whether the signature of an adult is required, and none is reported."""
        decided: Mapping[str, Any] = self.clearance.record if self.clearance else {}
        duties = decided["obligations"] if decided.get("cleared") else []
        required = any(isinstance(d, dict) and d.get("type") == "adult_signature" for d in duties)
        return required and not any(one.record[SIGNED] for one in self.reports)

    def of_kind(self, kind: str, line: int = 0) -> list[Fact]:
        """The facts of a kind, the earliest first; of a line, or of none."""
        return [f for f in self.facts if f.kind == kind and (line in f.lines or not line)]

    def _broken(self) -> Iterator[Break]:
        """What breaks a rule; the lines that break it by the same two facts are together."""
        found: dict[tuple[int, Fact, Fact], list[int]] = {}
        lines = sorted({line for fact in self.facts for line in fact.lines})
        for rule, first, then, apart, of_line in RULES:
            for line in lines if then in OF_LINES else [0]:
                before, after = self.of_kind(first, of_line or line), self.of_kind(then, line)
                if before and after and before[-1].time - after[0].time > apart:
                    found.setdefault((rule, before[-1], after[0]), []).append(line)
        for (number, late, early), own in found.items():
            what = early._replace(lines=tuple(own) if own != [0] else ()).words
            yield self._break(number, what, early, f", before {BEFORE[late.kind]}, ", late)
        yield from self._taken_wrongly()
        for fact in self.of_kind("delivered_at")[:1] if self.is_unsigned else []:
            without = ", without the signature of an adult, which the decision on it requires, "
            yield self._break(7, fact.words, fact, without, *self.of_kind("decided"))

    def _taken_wrongly(self) -> Iterator[Break]:
        """Initials that are taken from the first line, and are others; or are its own."""
        given = self.acknowledgment.shown.get(INITIALS) if self.acknowledgment else None
        firsts = [f for f in self.facts if f.kind in {"received", "changed"} and 1 in f.lines]
        for fact in self.of_kind("adopted"):
            if 1 in fact.lines:
                itself = "initials for the first line were taken from the line itself"
                yield self._break(3, itself, fact)
            others = tuple(n for n in fact.lines if given and given[n - 1] != given[0])
            if others and firsts and firsts[-1].time <= fact.time:
                what = fact._replace(lines=others).words
                yield self._break(3, what, fact, ", which has others, received ", firsts[-1])

    def _break(self, rule: int, what: str, fact: Fact, *parts: str | Fact) -> Break:
        """A sentence about a fact; a report is the vendor's word, and can be confirmed."""
        if fact.by != VENDOR:
            return Break(rule, [f"{what} ", fact, *parts])
        confirmed = any(one.record.get(CONFIRMED) for one in self.reports)
        end = ["; the vendor confirmed it"] * confirmed
        return Break(rule, [f"by the vendor's reports {what} ", fact, *parts, *end])

    def _named_check(self) -> str | None:
        """The check that the clearance names, if it is not here."""
        named = self.clearance and self.clearance.field("verification")
        return named if all(one.id != named for one in self.records) else None

    def _why_no_check(self) -> str:
        clearance = self.clearance
        if clearance is None or clearance.record["v"] == 1:
            return ", or what joins it is withheld or erased"
        if "verification" not in clearance.shown:
            return ": which one the clearance relied on is withheld or erased"
        named = clearance.field("verification")
        return f": {named}" if named else ": the clearance relied on none of this account"

    def as_json(self) -> dict[str, Any]:
        """The order for programs."""
        return {
            "records": [one._asdict() for one in self.records],
            "joins": self.joins,
            "missing": self.missing,
            "timeline": [fact._asdict() | {"what": fact.words} for fact in self.facts],
            "broken_rules": sorted({one.rule for one in self.broken}),
        }


def explain_order(order: Order) -> Iterator[str]:
    """The records of an order in words, what joins them, and what is missing."""
    for one in order.records:
        yield f"{one.type} {one.id}, entry {one.position}:"
        if one.type == "acknowledgment":
            yield from explain_contents(one.record, order.notice, one.shown)
            continue
        for name, value in one.record.items():
            if name not in {"v", "type", "id", "mode", "nonce", "_sd", "_sd_alg"}:
                yield f"  {name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in one.shown.items():
            yield f"  {name} (disclosed): {json.dumps(value, ensure_ascii=False)}"
    yield "What happened, in the order of time, and by whose word:"
    for fact in order.facts:
        yield f"  {fact.at}  {fact.words}, by {fact.by} ({fact.id})"
    yield "What joins these records:"
    yield from (f"  {what}" for what in order.joins)
    yield "Missing in this dossier (it cannot show that nothing else was left out):"
    yield from (f"  {what}" for what in order.missing or ["nothing that a dossier can name"])


# ---------------------------------------------------------------------------------------------
# Part 7. The verdict in at most six lines, for people: no word in them comes from the file.

OUTCOMES = {
    "ok": "Nothing wrong was found: the records are unchanged since the expected key signed them.",
    "consistent": "Nothing wrong was found in this file. Whose key signed this was not checked.",
    "paper": "Whose key signed this was not checked. That takes the file that this was made of.",
    "unchecked": "This file could not be checked: it has parts that cannot be read here, or that "
    "are not known here. Ask its operator how to check it.",
}
TEST = "This is test evidence: it proves nothing about a sale."
FAILURES = {
    "container": "it does not have the form that it must have, and may be damaged",
    "signature": "it is not rightly signed by an expected key",
    "quorum": "too few of the expected witnesses signed it",
    "record": "a record in it is not written as records are",
    "inclusion": "a record in it is not one of those that were signed",
    "disclosures": "personal details in it are not those of the record that was signed",
    "notice": "the notice or the initials are not those of the record that was signed",
    "joins": "its records are not those of one order",
    "timestamps": "a time-stamp in it is about something else",
    "files": "a file in it was changed",
}
EXPECTED = {
    "signature": "the expected key with the one that the operator publishes",
    "quorum": "the expected witnesses with those that the operator names",
}
ORIGINAL = "the file with the original, from its operator or from the person who made it"
KEY = (
    "the fingerprint of the key, below, with one from a source that you trust, such as the "
    "operator's own site"
)
NUMBERS = "no one two three four five six seven eight nine ten eleven twelve"
MONTHS = "January February March April May June July August September October November December"
RESULTS = {
    "verified": "verified",
    "failed": "failed",
    "pending": "not decided yet",
    "requires_input": "not complete",
}
REVIEW = "the operator's note that the text was compared with the law"
# Of the notice the order of time shows these besides, before or after the initials.
STOPS = ["enjoined", "reinstated", "withdrawn"]
REASONS = {
    "acknowledgment_not_found": "no such acknowledgment",
    "acknowledgment_erased": "an erased acknowledgment",
    "session_mismatch": "another checkout session",
    "acknowledgment_already_used": "the acknowledgment of another order",
    "order_already_fulfilled": "fulfilled before",
    "acknowledgment_too_old": "an acknowledgment that is too old",
    "notice_not_in_force": "a notice that is not in force",
    "product_class_missing": "no product class",
    "notice_not_sufficient": "a notice that does not cover the goods",
    "buyer_not_found": "no such buyer",
    "buyer_mismatch": "another buyer",
    "buyer_not_verified": "a buyer who is not verified",
    "buyer_requires_input": "an identity check that is not complete",
    "buyer_expired": "an identity check that has expired",
    "buyer_revoked": "a buyer who was revoked",
    "refused_by_vendor": "refused by the vendor",
    "zip_mismatch": "another ZIP code",
    "address_mismatch": "another address",
    "exemption_not_named": "an exemption that no rule names",
    "exemption_facts_missing": "an exemption without the facts that its rule needs",
    "exemption_expired": "an exemption that has expired",
}
EXEMPT = "without the notice, by the vendor's assertion of an exemption, which nothing here checks"
KINDS = {
    "acknowledgment": "an acknowledgment",
    "verification": "an identity check",
    "clearance": "a decision on an order",
    "fulfilment": "a report by the vendor",
    "override": "a manual override, which is no clearance",
    "erasure": "an erasure",
}
PARTIES = {"operator": "the operator", "account": "the vendor"}


def several(count: int, one: str, more: str) -> str:
    """`one`, or a number in words and `more`."""
    number = NUMBERS.split()[count] if count <= 12 else str(count)
    return one if count == 1 else f"{number} {more}"


def day_of(time: str) -> str:
    """A time of a record, for people."""
    year, month, day, *clock = re.split("[^0-9]", time)[:5]
    at = f", {':'.join(clock)} UTC" if clock else ""
    return f"{int(day)} {MONTHS.split()[int(month) - 1]} {year}{at}"


def on_day(time: str) -> str:
    """The same in a sentence."""
    return f"on {day_of(time)}"


def summary(report: Report, *, paper: bool = False) -> list[str]:
    """The verdict in at most six lines; on `paper` no key was checked, whatever was given."""
    if report.failed:
        return stopped(report.failed.name, report.outcome)
    outcome = "paper" if paper else report.outcome
    test = f" {TEST}" if report.record["mode"] == "test" else ""
    parts = {
        "Shown": _shown(report),
        "Missing": _missed(report),
        "To compare": list(_to_compare(report, outcome)),
        "Not shown": list(_not_shown(report)),
    }
    shown, *said = [f"{name}: {'; '.join(part)}." for name, part in parts.items() if part]
    odd = report.order.broken if report.order else []
    shown = " ".join([shown, *(f"Odd: {one.said(on_day)}." for one in odd)])
    return [OUTCOMES[outcome] + test, _when(report, outcome), shown, *said]


def stopped(step: str, outcome: str = "failed") -> list[str]:
    """The same of a file that failed at this step, or could not be checked there."""
    if outcome == "unchecked":
        return [OUTCOMES[outcome]]
    failed = f"Do not rely on this file. It failed a check: {FAILURES[step]}."
    return [failed, f"To compare: {EXPECTED.get(step, ORIGINAL)}."]


def _when(report: Report, outcome: str) -> str:
    """The time that the operator names, and since when others know of it."""
    record, others = report.record, []
    name, did = ("accepted_at", "Accepted") if "accepted_at" in record else ("at", "Recorded")
    at = f"{did} on {day_of(record[name])}" if is_time(record.get(name)) else ""
    seen = _first(report.seen, "the clock of ", "a witness", "witnesses")
    stamped = _first(report.stamped, "", "a time-stamp", "time-stamps")
    if seen:
        others.append(seen + ("" if outcome == "ok" else ", whose key was not checked"))
    if stamped:
        signer = "" if _signers_checked(report, outcome) else ", whose signer was not checked"
        others.append(stamped + signer)
    if others:
        by = f"{at} by the operator's clock; it" if at else "It"
        return f"{by} existed at the latest {', and '.join(others)}."
    return f"{at}{': t' if at else 'T'}he time is the operator's word, without other support."


def _first(times: Sequence[str], by: str, one: str, more: str) -> str:
    """When the first of these was, and how many there are; nothing if none has a time."""
    found = sorted(time for time in times if is_second(time))
    who = several(len(found), one, more)
    of = "" if len(found) == 1 else "the first of "
    return f"on {day_of(found[0])} by {by}{of}{who}" if found else ""


def _shown(report: Report) -> list[str]:
    """What the records say was done, equal ones counted."""
    if report.order is None:
        return [f"the record of {KINDS.get(report.record['type'], 'another event')} alone"]
    records = sorted(report.order.records, key=lambda one: one.type == "notice_event")
    found = [pair for pair in [_words_of(one, report) for one in records] if pair[0]]
    said = [several(found.count(pair), *pair) for pair in dict.fromkeys(found)]
    kinds = {one.type for one in report.order.records}
    parties = [name for kind, name in PARTIES.items() if kind in kinds]
    return said + [f"{' and '.join(parties)}, as described"][: len(parties)]


def _words_of(one: Placed, report: Report) -> tuple[str, str]:
    """What a record shows, and several such: empty for what the verdict does not name."""
    record, words = one.record, ("", "")
    if one.type == "acknowledgment":
        given = "each with initials" if INITIALS in one.shown else "without the initials"
        lines = several(len(report.notice["bullets"]), "one line", "lines")
        words = (f"{lines} of the notice, {given}{how_taken(one.shown.get(PROCESS))}", "")
    elif one.type == "verification":
        words = _words_of_check(one)
    elif one.type == "clearance":
        why = dict.fromkeys(REASONS.get(code, "another reason") for code in record["reasons"])
        refused = f"refused ({', '.join(why)})" if why else "refused"
        said = f"the order, {'cleared' if record['cleared'] else refused}"
        said += "" if record.get("order_named", True) else ", named by its session alone"
        said += f", {EXEMPT}" if "exempt_from" in record else ""
        if "paid_at" in record:
            said += f", with an acknowledgment kept by a payment {on_day(record['paid_at'])}"
        words = (said, "")
    elif one.type == "fulfilment" and report.order and one is report.order.of("fulfilment")[0]:
        words = (_reported(report.order), "")
    elif one.type == "override":
        by = OVERRIDDEN_BY[record["people"]]
        words = (f"a manual override {by}, which is no clearance", "")
    elif one.type == "erasure":
        words = ("an erasure of personal details", "erasures of personal details")
    elif one.type == "notice_event" and record["event"] in STOPS:
        side = "before" if record["at"] <= report.record["accepted_at"] else "after"
        noted = f", with {REVIEW}" if is_review(one, report.record) else ""
        what = EVENTS[record["event"]].replace(" was ", ", ")
        words = (f"{what} {on_day(record['at'])}, {side} the initials{noted}", "")
    elif is_review(one, report.record):
        words = (REVIEW, "notes of the operator that the text was compared with the law")
    return words


def how_taken(process: Mapping[str, Any] | None) -> str:
    """How many initials were taken from the first line, and how quickly all came."""
    lines = process["lines"] if process else []
    taken, said = sum(line.get("method") == "adopted" for line in lines), ""
    if taken:
        said = f", {several(taken, 'one of them', 'of them')} taken from the first line, "
        said += f"{'each ' if taken > 1 else ''}at a request that named the line"
    waits = [wait_of(line) for line in lines]
    if lines and min(waits) >= timedelta():
        seconds = -(-max(waits) // timedelta(seconds=1))
        said += f", within {several(max(seconds, 1), 'a second', 'seconds')} of being served"
    return said


def _reported(order: Order) -> str:
    """What the vendor's reports say together."""
    named = [words for name, words in PARCEL.items() if any(r.field(name) for r in order.reports)]
    parts = [" and ".join(named)] * bool(named)
    for name, (_, did) in REPORTED.items():
        times = dict.fromkeys(fact.at for fact in order.of_kind(name))
        parts += [f"{did} {' and '.join(map(on_day, times))}"] * bool(times)
    signed = {one.record[SIGNED] for one in order.reports} - {None}
    if signed:
        parts.append(f"{'' if True in signed else 'no '}signature of an adult obtained")
    said = f"by the vendor's reports: {', '.join(parts)}"
    said = said if parts else "a report by the vendor, which shows nothing of shipment or delivery"
    wrong = len(order.of("fulfilment")) - len(counted(order.records))
    also = several(wrong, "one report", "reports")
    return said + (f", with {also} that a later one corrects" if wrong else "")


def _words_of_check(one: Placed) -> tuple[str, str]:
    record, result = one.record, one.shown.get("result")
    said = RESULTS.get(result["status"], "with another result") if result else "result not shown"
    said += ", in part by the operator's decision" if "override" in record else ""
    said += ", asked elsewhere than at the provider" if "endpoint" in record else ""
    if "binding" in record:
        known = f"the buyer known from an earlier identity check, {said}"
        return known, f"times {known}"
    kind = "simulated identity check" if record["simulated"] else "identity check"
    return f"{'a' if record['simulated'] else 'an'} {kind}, {said}", f"{kind}s, {said}"


def is_review(one: Placed, record: Mapping[str, Any]) -> bool:
    """Whether this says that the version which was acknowledged had been reviewed before."""
    of_it, same = one.record, ("notice_id", "notice_version")
    return (
        one.type == "notice_event"
        and of_it["event"] in {"reviewed", "reinstated"}
        and of_it["at"] <= record["accepted_at"]
        and all(of_it[name] == record[name] for name in same)
    )


def _missed(report: Report) -> list[str]:
    """What is missing, each once; the two parties in one."""
    if report.order is None:
        return ["all that belongs to it"]
    order = report.order
    unseen = not any(is_review(one, report.record) for one in order.records)
    review = [REVIEW] * bool(order.acknowledgment and unseen)
    words = list(dict.fromkeys([*order.missing_words, *review]))
    none = [said for said, _ in UNDESCRIBED.values()][:2]
    if set(none) <= set(words):
        words[words.index(none[0])] = "neither operator nor vendor had described itself"
        words.remove(none[1])
    return words + ["part of the notice's text"] * bool(report.notice.get("text_gaps"))


def _to_compare(report: Report, outcome: str) -> Iterator[str]:
    if outcome != "ok":
        yield KEY
    if report.stamped and not _signers_checked(report, outcome):
        yield "who signed the time-stamps, with the certificates of their authorities"


def _signers_checked(report: Report, outcome: str) -> bool:
    return outcome != "paper" and report.means.signer is not unknown_signer


def _not_shown(report: Report) -> Iterator[str]:
    capture = report.record.get("capture")
    kinds = {one.type for one in report.order.records} if report.order else set()
    if capture == "hosted" and report.shown.get(PROCESS, {"surface": "page"})["surface"] != "page":
        yield "whether a person was there, who, and what the vendor's page showed"
    elif capture == "hosted":
        yield "who typed the initials, and whether that person read the notice"
    elif capture == "vendor_api":
        yield "whether the buyer saw the notice and typed the initials, which the vendor asserts"
    if capture and "verification" in kinds:
        yield "whether the person who was checked is that buyer"
    if "fulfilment" in kinds:
        yield "what was shipped, which the vendor asserts"
    yield "whether anything was left out"


# ---------------------------------------------------------------------------------------------
# Part 8. The command.


def printable(value: object) -> str:
    """A text from a file, with whatever could play tricks on a terminal made visible."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in str(value)
    )


def outcome(report: Report) -> dict[str, Any]:
    """The outcome for programs."""
    failed = report.failed
    return {
        "ok": report.outcome == "ok",
        "outcome": report.outcome,
        "verifier": f"verify.py {VERSION}",
        "step": list(STEPS).index(failed.name) + 1 if failed else None,
        "name": failed.name if failed else None,
        "summary": summary(report),
        "message": report.line(),
        "steps": [
            {"number": number, **step._asdict()} for number, step in enumerate(report.steps, 1)
        ],
        "facts": report.facts,
        "record": report.record if report.ok else {},
        "notice": report.notice if report.ok else {},
        "shown": report.shown if report.ok else {},
        "order": report.order.as_json() if report.ok and report.order else None,
        "remarks": report.remarks if report.ok else [],
    }


def explain(report: Report) -> Iterator[str]:
    """The outcome for people, line by line."""
    yield from summary(report)
    yield ""
    yield f"verify.py {VERSION}"
    yield ""
    for number, step in enumerate(report.steps, 1):
        detail = f": {step.detail}" if step.detail else ""
        yield f"{number} {step.name:<12} {step.result:<12} {STEPS[step.name]}{detail}"
    yield ""
    if report.ok and report.order:
        yield from explain_order(report.order)
        yield ""
    if report.ok and report.remarks:
        yield "Odd, and no failure:"
        yield from (f"  {remark}" for remark in report.remarks)
        yield ""
    if report.ok:
        if report.record.get("capture") == "hosted":
            yield "It shows what a client sent that had the session's token, and not who used it,"
            yield "that it was a browser, or that the notice was read. The vendor had that token."
        if report.facts["cosigned"]:
            yield "The times of the witnesses are by their own clocks."
        if report.order:
            yield "Rely on the text above. The signature does not cover dossier.pdf and verify.py"
            yield "in the dossier: get verify.py and the policy from another source."
    if report.facts.get("policy") == "own" and "key_fingerprint" in report.facts:
        yield "The signature was checked with the key that came in this dossier, and who made the"
        yield "dossier may have made the key too. Check with a policy from a source that you trust"
        yield "(--policy FILE), or compare the fingerprint of the key with one from such a source:"
        yield f"  {report.facts['key_fingerprint']}"
    yield report.line()


def explain_contents(
    record: Mapping[str, Any], notice: Mapping[str, Any], shown: Mapping[str, Any]
) -> Iterator[str]:
    """The acknowledged text, and the personal fields that are shown."""
    bullets = notice["bullets"]
    given = shown.get(INITIALS, ["(not shown)"] * len(bullets))
    yield f"Accepted at {record['accepted_at']} by the service's own clock, on its operator's word,"
    yield (
        f"for {record['account']}, captured by {record['capture']}, with a {record['credential']}."
    )
    for name, words in BOUND.items():
        if record["v"] == 2 and name in record:
            bound = f"SHA-256 {record[name]}" if record[name] else "none was in force"
            yield f"  record of {words}: {bound}"
    yield f"Notice {record['notice_id']}, version {record['notice_version']}: {notice['title']}"
    yield f"  (version {known(VERSION_SOURCES, record['notice_version_source'])})"
    for name in ABOUT:
        if name in notice:
            value = notice[name]
            yield f"  {name}: {value if isinstance(value, str) else json.dumps(value)}"
    yield f"The notice reads: {notice['heading']}"
    for typed, bullet in zip(given, bullets, strict=True):
        yield f"  {typed:<12} ({bullet['id']}) {bullet['text']}"
    yield f"The notice ends with: {notice['attestation_text']}"
    for gap in notice.get("text_gaps", []):
        yield f"Known to be missing in this text: {gap}"
    for name, value in shown.items():
        if name not in {INITIALS, PROCESS}:  # both are shown in words
            yield f"  {name}: {json.dumps(value, ensure_ascii=False)}"
    if PROCESS in shown:
        yield from explain_process(shown[PROCESS], [bullet["id"] for bullet in bullets])


def explain_process(process: Mapping[str, Any], ids: Sequence[str]) -> Iterator[str]:
    """How the initials were made: what the service observed, and what the client claims."""
    page = process["surface"] == "page"
    digest = process["rendered_digest"] or "not known"
    yield "How the initials were made, as the service observed it:"
    yield f"  hosted session: {process['checkout_session']}"
    if page:
        yield "  served: a page of the service"
        yield f"  SHA-256 of what was served: {digest}"
    else:
        yield "  served: the text of the notice, to a client that had the session's token"
    yield f"  interface in the language {process['locale']}"
    yield f"  notice first served at {process['opened_at']}"
    yield from explain_lines(process["lines"], ids)
    reviewed = process["reviewed_at"]
    yield f"  review step {f'served at {reviewed}' if reviewed else 'not served by the service'}"
    for name in ("agreement", "consent"):
        yield f"  {name}, a box that the client sent as ticked: {process[name]}"
    yield f"  tied to the session by: {known(BINDINGS, process['binding'])}"
    yield f"  identity check: {process['verification'] or 'none'}"
    yield "The client claims, and the service did not observe:"
    if not page:
        origin = process["origin"] or "an unknown origin"
        shown = known({"component": "a component"}, process["surface"])
        yield f"  shown by {shown} in the vendor's page at {origin}"
        yield f"  SHA-256 of what was shown: {digest}"
    ran, size = process["script"], process["viewport"]
    yield f"  JavaScript ran: {'not known' if ran is None else 'yes' if ran else 'no'}"
    window = f"{size['width']} x {size['height']} CSS pixels" if size else "not known"
    yield f"  window: {window}"
    for claim in process["claimed"]:
        line = "" if claim["line"] is None else f" line {claim['line']}"
        yield f"  {claim['event']}{line}; received at {claim['at']}"


def explain_lines(lines: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> Iterator[str]:
    """When lines were served, and initials received; together, if it was one request."""
    together = len({(line["shown_at"], line["initialed_at"]) for line in lines}) == 1
    if together:
        served, received = lines[0]["shown_at"], lines[0]["initialed_at"]
        waited = f"{wait_words(lines[0])} they were served, at {served}"
        yield f"  all lines were received in one request, at {received}, {waited}"
    for id_, line in zip(ids, lines, strict=True):
        times = "" if together else f" served at {line['shown_at']}, initials received at "
        times += "" if together else f"{line['initialed_at']}, {wait_words(line)} that,"
        changed = "the same in every submission"
        if line["changes"]:
            changed = f"other initials {line['changes']} time(s), last at {line['changed_at']}"
        if "method" in line:
            changed += f"; {known(METHODS, line['method'])}"
        yield f"  ({id_}){times} {changed}"


def wait_of(line: Mapping[str, Any]) -> timedelta:
    """The time from serving a line to receiving initials for it."""
    served, received = (datetime.fromisoformat(line[n]) for n in ("shown_at", "initialed_at"))
    return received - served


def wait_words(line: Mapping[str, Any]) -> str:
    """The same, such as `0.042 s after`; or `before`, which is odd."""
    wait = wait_of(line).total_seconds()
    return "before" if wait < 0 else f"{wait:.3f} s after"


ABOUT = ["source_law", "source_bill", "source_url", "jurisdiction", "language", "effective_from"]
ABOUT += ["obligations"]
BOUND = {
    "operator_record": "the operator",
    "account_record": "the account",
    "capture_process": "how the vendor captures",
}
VERSION_SOURCES = {
    "asserted": "asserted: the request named the version that was shown",
    "assumed": "assumed: the vendor named none, so the version in force was used",
}


USAGE = (
    "usage: python3 -I verify.py [DOSSIER | PROOF | FOLDER] [--policy FILE] [--own-key] [--json]"
)
STATUS = {"ok": 0, "failed": 1, "unchecked": 2, "consistent": 3}


def main(arguments: Sequence[str]) -> int:
    """Run the command; gives the exit status."""
    rest, policy_file, as_json, own_key = list(arguments), None, False, False
    places: list[str] = []
    while rest:
        argument = rest.pop(0)
        if argument in {"-h", "--help"}:
            print(__doc__)
            return 0
        if argument == "--version":
            print(f"verify.py {VERSION}")
            return 0
        if argument == "--json":
            as_json = True
        elif argument == "--own-key":
            own_key = True
        elif argument == "--policy" and rest and policy_file is None:
            policy_file = Path(rest.pop(0))
        elif argument.startswith("-") or places:
            print(USAGE, file=sys.stderr)
            return 2
        else:
            places.append(argument)
    place = Path(places[0]) if places else Path(__file__).resolve().parent
    try:
        policy = None if policy_file is None else read_policy(read_file(policy_file, 1_000_000))
        if place.exists() and not place.is_file() and not place.is_dir():
            print("cannot be checked: reading a pipe or a device may never end", file=sys.stderr)
            return 2
        if place.is_dir():
            report = verify_folder(place, policy)
        else:
            data = read_file(place)
            if data.startswith(b"%PDF"):
                print(printable(about_certificate(data)), file=sys.stderr)
                return 2
            report = verify_bytes(data, policy)
    except (OSError, ValueError, Bad) as error:
        print(printable(f"cannot be checked: {error}"), file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps(outcome(report), indent=2))
    else:
        for line in explain(report):
            print(printable(line))
    return 0 if own_key and report.outcome == "consistent" else STATUS[report.outcome]


def about_certificate(pdf: bytes) -> str:
    """The message for a certificate given in place of its dossier."""
    found = re.search(rb"ack_[0-7][0-9a-hjkmnp-tv-z]{25}", pdf)
    of = f" It seems to belong to {found[0].decode()}." if found else ""
    return (
        f"cannot be checked: this is a PDF, perhaps a certificate.{of} A certificate alone "
        "proves nothing: request the dossier, a ZIP file, from the sender"
    )


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # for terminals that cannot show every character
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))
