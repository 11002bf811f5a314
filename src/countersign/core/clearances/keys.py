"""The keys that sign the tokens of clearances: kept sealed in the vault, opened where they sign.

Test and live have separate keys, and their tokens differ in three ways (key id, type and issuer),
so that no sandbox token passes for a real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import accumulate, zip_longest
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, bindparam, delete, insert, select

from countersign.base.db.statements import rows
from countersign.base.db.tables import clearance_keys
from countersign.base.errors import CountersignError, InvalidArgument, UnknownKey
from countersign.base.snapshot import Snapshot
from countersign.base.values import Mode, from_ns, to_ms
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.room import Access
from countersign.core.buyers.rules import zip5
from countersign.core.clearances.model import LIFETIME_MAX, GrantedClearance
from countersign.core.vault.vault import DEPLOYMENT, SealedColumn, Vault
from countersign_evidence.canonical import Json, canonical_json
from countersign_evidence.disclosure import b64url

# The token of a clearance: JWS (RFC 7515) in compact form with Ed25519 (RFC 8037).
#
# It contains nothing personal, because many hands pass it on.

SEED_BYTES: Final = 32
_ALGORITHM: Final = "EdDSA"


def token_claims(
    public_url: str,
    mode: Mode,
    account_id: str,
    granted: GrantedClearance,
    *,
    ack_id: str,
    order_sha256: str,
    obligations: Sequence[Mapping[str, Any]],
) -> dict[str, Json]:
    """The claims (RFC 7519 §4) of a clearance; the same clearance always has the same claims.

    They bind the token to its order and contain the warehouse's duties, without the buyer or the
    destination: whoever knows the order can check `order_sha256`. The deployment at `public_url` is
    the issuer; its sandbox is an issuer apart. The time of a test clock is a claim only where it
    was ahead.
    """
    at, clock_at = to_ms(granted.at) // 1000, to_ms(granted.clock_at) // 1000
    test_clock = {} if granted.clock_at == granted.at else {"test_clock": clock_at}
    return {
        **test_clock,
        "iss": public_url if mode is Mode.LIVE else f"{public_url}/test",
        "sub": granted.clearance_id,
        "iat": at,
        "exp": to_ms(granted.expires_at) // 1000,
        "livemode": mode is Mode.LIVE,
        "account": account_id,
        "ack_id": ack_id,
        "order_sha256": order_sha256,
        "obligations": [*map(dict, obligations)],
    }


def order_digest(shipping_zip: str, classes: Sequence[str], session_id: str) -> str:
    """Hex SHA-256 of five-digit ZIP code, product classes and session, with line feeds between.

    The classes are sorted, with commas between. Only the last member can contain a line feed, so
    no two orders have the same text. If sessions cannot be guessed, it reveals nothing to people
    who do not know the order.
    """
    text = f"{zip5(shipping_zip)}\n{','.join(classes)}\n{session_id}"
    return sha256(text.encode()).hexdigest()


class TokenSigner:
    """An Ed25519 key that signs tokens of one type, from its 32-byte seed (RFC 8032 §5.1.5)."""

    def __init__(self, kid: str, seed: bytes, type_: str) -> None:
        self.kid = kid
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        # Every token of a key has the same header.
        header: dict[str, Json] = {"alg": _ALGORITHM, "kid": kid, "typ": type_}
        self._header = b64url(canonical_json(header)).encode("ascii") + b"."

    def __repr__(self) -> str:
        return f"TokenSigner({self.kid})"

    def sign(self, claims: dict[str, Json]) -> str:
        """The token: header, claims and signature in base64url, with dots between them.

        The same claims give the same token: Ed25519 has no randomness.
        """
        signed = self._header + b64url(canonical_json(claims)).encode("ascii")
        return f"{signed.decode('ascii')}.{b64url(self._key.sign(signed))}"


def public_key(seed: bytes) -> bytes:
    """The 32 bytes of the public key that goes with a seed."""
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def jwk(kid: str, public: bytes) -> dict[str, Json]:
    """A public key as a JSON Web Key (RFC 7517, RFC 8037 §2)."""
    return {**_required(public), "alg": _ALGORITHM, "kid": kid, "use": "sig"}


def thumbprint(public: bytes) -> str:
    """The SHA-256 thumbprint of a public key (RFC 7638, RFC 8037 §2), in base64url."""
    return b64url(sha256(canonical_json(_required(public))).digest())


def _required(public: bytes) -> dict[str, Json]:
    return {"crv": "Ed25519", "kty": "OKP", "x": b64url(public)}


TOKEN_TYPES: Final = {Mode.LIVE: "clearance+jwt", Mode.TEST: "test-clearance+jwt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceKey:
    """One key of a mode; `seed` is sealed by the vault."""

    mode: Mode
    number: int
    """Its place in the row of keys, from 1."""
    kid: str
    """The key id: `live-` or `test-`, and the thumbprint of the public key (RFC 7638)."""
    public_key: bytes
    seed: bytes
    created_at: datetime
    signs_from: datetime
    """It signs from then until the next key's start."""


@dataclass(frozen=True, slots=True)
class Signers:
    """The keys that sign in one mode."""

    keys: Sequence[ClearanceKey]
    """The oldest first."""
    by_kid: dict[str, TokenSigner]

    def at(self, now: datetime) -> TokenSigner:
        """The newest key that may already sign; the first if the clock went back."""
        ready = (key for key in reversed(self.keys) if key.signs_from <= now)
        return self.by_kid[next(ready, self.keys[0]).kid]

    def of(self, kid: str, now: datetime) -> TokenSigner:
        """The key with this id, so that equal claims give an equal token."""
        return self.by_kid.get(kid) or self.at(now)


class ClearanceKeys:
    """Makes, opens and publishes the signing keys."""

    def __init__(self, access: Access, vault: Vault) -> None:
        self._access = access
        self._seeds = SealedColumn(vault, access.entropy, "clearance_keys", "seed")
        self._opened: dict[str, TokenSigner] = {}
        self._signers = {mode: Snapshot(partial(self._read, mode), access.clock) for mode in Mode}

    async def begin(self) -> None:
        """Create the first key of each mode, if there is none."""
        for mode in Mode:
            if not await self.list(mode):
                await self.rotate(mode, timedelta(0))

    async def signers(self, mode: Mode) -> Signers:
        """The signing keys of this mode, at most STALENESS_SECONDS old."""
        return await self._signers[mode].get()

    async def published(self, modes: Sequence[Mode]) -> dict[str, Any]:
        """The public keys as a JWK Set (RFC 7517 §5): all that a valid token can be signed with.

        A key is published from its creation until its last signature has expired.
        """
        now = from_ns(self._access.clock.time_ns())
        keys = [key for mode in modes for key in _valid(await self.list(mode), now)]
        return {
            "keys": [jwk(k.kid, k.public_key) | {"livemode": k.mode is Mode.LIVE} for k in keys]
        }

    async def list(self, mode: Mode) -> Sequence[ClearanceKey]:
        """Every key of a mode, oldest first."""
        return await self._access.database.read(_keys, mode)

    async def withdraw(self, kid: str) -> ClearanceKey:
        """Take a key back, and with it every token that it has signed: someone else has it."""
        access, of_key = self._access, clearance_keys.c.kid == kid
        audit = access.audit.entry(AuditAction.CLEARANCE_KEY_WITHDRAWN, kid)
        now = from_ns(access.clock.time_ns())

        def remove(connection: Connection) -> ClearanceKey | CountersignError:
            mode = connection.execute(select(clearance_keys.c.mode).where(of_key)).scalar()
            if mode is None:
                return UnknownKey(
                    f"The key {kid!r} does not exist; `countersign clearances keys` shows all keys."
                )
            keys = _keys(connection, Mode(mode))
            if not any(other.kid != kid and other.signs_from <= now for other in keys):
                return InvalidArgument(
                    "No other key is ready to sign. Make one: `countersign clearances rotate-key "
                    "--at-once`."
                )
            connection.execute(delete(clearance_keys).where(of_key))
            write_audit(connection, audit)
            return next(key for key in keys if key.kid == kid)

        return await access.database.write(remove)

    async def rotate(self, mode: Mode, overlap: timedelta) -> ClearanceKey:
        """Add a key that is published now and signs when `overlap` is over.

        By then verifiers of tokens have read it.
        """
        time_ns = self._access.clock.time_ns()
        seed = self._access.entropy(SEED_BYTES)
        public = public_key(seed)
        kid = f"{mode.value}-{thumbprint(public)}"
        sealed = await self._seeds.seal(seed, account=DEPLOYMENT, row_id=kid, time_ns=time_ns)
        before = await self.list(mode)
        key = ClearanceKey(
            mode=mode,
            number=before[-1].number + 1 if before else 1,
            kid=kid,
            public_key=public,
            seed=sealed,
            created_at=from_ns(time_ns),
            signs_from=from_ns(time_ns) + overlap,
        )
        audit = self._access.audit.entry(AuditAction.CLEARANCE_KEY_ADDED, kid, mode=mode.value)

        def add(connection: Connection) -> ClearanceKey:
            # If another process adds a key with this number at the same moment, its row makes this
            # transaction fail; the call is retried and then sees that row.
            if other := next((k for k in _keys(connection, mode) if k.number == key.number), None):
                return other
            connection.execute(insert(clearance_keys), asdict(key))
            write_audit(connection, audit)
            return key

        return await self._access.database.write(add)

    async def _read(self, mode: Mode) -> Signers:
        keys = await self.list(mode)
        for key in keys:
            if key.kid not in self._opened:
                seed = await self._seeds.open(key.seed, account=DEPLOYMENT, row_id=key.kid)
                self._opened[key.kid] = TokenSigner(key.kid, seed, TOKEN_TYPES[mode])
        return Signers(keys, {key.kid: self._opened[key.kid] for key in keys})


def _valid(keys: Sequence[ClearanceKey], now: datetime) -> list[ClearanceKey]:
    """Keys that sign, will sign, or signed clearances that may still be valid."""
    ends = [*accumulate((key.signs_from for key in reversed(keys[1:])), min)][::-1]
    return [k for k, end in zip_longest(keys, ends) if end is None or now < end + LIFETIME_MAX]


_OF_MODE: Final = select(clearance_keys).filter_by(mode=bindparam("mode")).order_by("number")


def _keys(connection: Connection, mode: Mode) -> list[ClearanceKey]:
    return rows(connection, _OF_MODE, ClearanceKey, {"mode": mode})
