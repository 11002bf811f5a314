"""The keys that sign checkpoints: sealed in the vault, or on a PKCS#11 token."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final, TypeAlias

import structlog

from countersign.base.config import Settings
from countersign.base.errors import (
    CountersignError,
    DamagedValue,
    InvalidConfiguration,
    StorageUnavailable,
    TokenUnavailable,
)
from countersign.base.values import Mode, from_ns
from countersign.core.log import logs_sql
from countersign.core.log.model import Log, LogKey
from countersign.core.log.sequencer import Sequencer
from countersign.core.log.token import configured_token
from countersign.core.vault.vault import DEPLOYMENT, SealedColumn, VaultRoom
from countersign_evidence.errors import EvidenceError
from countersign_evidence.key_history import KeyHistory, check_history, sign_history
from countersign_evidence.note import (
    ED25519,
    MLDSA_COSIGNATURE,
    Checkpoint,
    Signer,
    open_note,
    sign_checkpoint,
)
from countersign_evidence.tree import EMPTY_ROOT

SEED_BYTES: Final = 32
TOKEN_ID_BYTES: Final = 16
_RETRY_SECONDS: Final = 2

_Made: TypeAlias = tuple[int, int]
"""The log, by its id, and the time in Unix nanoseconds."""

_log: Final = structlog.get_logger("countersign.sealing")


def test_seed(origin: str) -> bytes:
    """The key of a test log, published on purpose: anyone can make it from the origin.

    So test evidence proves nothing, and a live policy never names such a key.
    """
    return sha256(b"countersign: the key of a test log\x00" + origin.encode()).digest()


class LogKeys:
    """Makes and opens the signing keys of logs."""

    def __init__(self, vault: VaultRoom, sequencer: Sequencer, settings: Settings) -> None:
        access = vault.access
        self._database = access.database
        self._sequencer = sequencer
        self._seeds = SealedColumn(vault.vault, access.entropy, "log_keys", "seed")
        self._clock = access.clock
        self._entropy = access.entropy
        self._settings = settings
        self._token = configured_token(settings)
        self._histories: dict[int, tuple[KeyHistory, bytes]] = {}
        if settings.log_keys == "pkcs11" and self._token is None:
            raise InvalidConfiguration(
                "COUNTERSIGN_LOG_KEYS is pkcs11, so COUNTERSIGN_PKCS11_MODULE has to name a token."
            )

    async def make(self, mode: Mode, origin: str, log_id: int) -> Sequence[tuple[Signer, LogKey]]:
        """New keys for a log: one by Ed25519, and where that is set one by ML-DSA-44.

        The Ed25519 key is on the token or in the vault, as is set; the other always in the vault.
        A test log gets the published one. TokenUnavailable if the token makes none.
        """
        at = log_id, self._clock.time_ns()
        if mode is Mode.TEST:
            return [await self._in_vault(origin, at, test_seed(origin), ED25519)]
        made = []
        if self._settings.log_keys == "pkcs11" and self._token is not None:
            token_id = self._entropy(TOKEN_ID_BYTES)
            verifier = await asyncio.to_thread(self._token.make, origin, token_id)
            signer = self._token.signer(verifier, token_id)
            kept = LogKey(
                log_id=log_id, vkey=verifier.vkey, token_id=token_id, created_at=from_ns(at[1])
            )
            made.append((signer, kept))
        else:
            made.append(await self._in_vault(origin, at, self._entropy(SEED_BYTES), ED25519))
        if self._settings.log_ml_dsa:
            seed = self._entropy(SEED_BYTES)
            made.append(await self._in_vault(origin, at, seed, MLDSA_COSIGNATURE))
        return made

    async def _in_vault(
        self, origin: str, at: _Made, seed: bytes, kind: int
    ) -> tuple[Signer, LogKey]:
        signer = Signer.from_seed(origin, seed, kind)
        vkey = signer.verifier.vkey
        sealed = await self._seeds.seal(seed, account=DEPLOYMENT, row_id=vkey, time_ns=at[1])
        return signer, LogKey(log_id=at[0], vkey=vkey, seed=sealed, created_at=from_ns(at[1]))

    async def signers(self, log: Log) -> list[Signer]:
        """The keys that sign for a log now: Ed25519 before ML-DSA-44, newest first.

        A damaged key is left out: only sealing needs it, and waits if there is no other. An
        unusable key on a token is not left out: sealing waits for it.
        """
        now = from_ns(self._clock.time_ns())
        keys = reversed(await self._database.read(logs_sql.keys_of, log.id))
        current = [key for key in keys if key.retires_at is None or now < key.retires_at]
        opened = [await self.opened(log, key) for key in current]
        signers = [signer for signer in opened if signer is not None]
        return sorted(signers, key=lambda signer: signer.verifier.kind)

    async def opened(self, log: Log, key: LogKey) -> Signer | None:
        """The signer of this key; None if it cannot be opened; that is logged."""
        with suppress(DamagedValue, EvidenceError, ValueError):
            verifier = key.verifier
            if key.token_id is not None:
                if self._token is not None:
                    return self._token.signer(verifier, key.token_id)
                _log.error("log_key_on_unknown_token", log=log.origin, key=key.vkey)
                return None
            sealed = key.seed or b""
            seed = await self._seeds.open(sealed, account=DEPLOYMENT, row_id=key.vkey)
            signer = Signer.from_seed(log.origin, seed, verifier.kind)
            if signer.verifier.vkey == key.vkey:
                return signer
        _log.error("log_key_damaged", log=log.origin, key=key.vkey)
        return None

    async def sign_history(self, log: Log, history: KeyHistory) -> bytes:
        """The signed note of a history: signed by each of the Ed25519 keys that is still held.

        Signed again only if the history is another. StorageUnavailable if the newest key cannot
        sign at the moment.
        """
        kept = self._histories.get(log.id)
        if kept is not None and kept[0] == history:
            return kept[1]
        held = []
        for key in reversed(await self._database.read(logs_sql.keys_of, log.id)):
            signer = await self.opened(log, key) if key.verifier.kind == ED25519 else None
            if signer is not None:
                held.append(signer)
        try:
            note = await asyncio.to_thread(sign_history, history, held)
            check_history(note, [key for key in history.keys if key.kind == ED25519][-1:])
        except (TokenUnavailable, EvidenceError) as error:
            raise StorageUnavailable(
                "The keys of the log cannot sign their history at the moment.",
                retry_after=_RETRY_SECONDS,
            ) from error
        self._histories[log.id] = history, note
        return note

    async def why_unusable(self, log: Log, key: LogKey) -> str | None:
        """Why this key cannot sign; None: it can, and has signed the log's empty tree."""
        signer = await self.opened(log, key)
        if signer is None:
            if key.token_id is not None:
                return "is on a token that the settings do not name"
            return "cannot be decrypted"
        empty = Checkpoint(log.origin, 0, EMPTY_ROOT)
        try:
            note = await asyncio.to_thread(sign_checkpoint, empty, [signer])
            open_note(note, [key.verifier])
        except TokenUnavailable as error:
            return f"cannot be used: {error.message}"
        except EvidenceError:
            return "is not on the token: the one with its id there signs differently"
        return None

    async def load(self) -> None:
        """Give the sequencer the keys of the newest log of each mode.

        If they have changed and cannot be read, sealing is suspended.
        """
        # Before reading: a later change is noticed again.
        changed = frozenset(self._sequencer.unknown_keys)
        self._sequencer.unknown_keys.clear()
        try:
            for log in (await self._database.read(logs_sql.newest_logs)).values():
                self._sequencer.learn(log.id, log.keys_revision, await self.signers(log))
        except CountersignError as error:
            for mode in changed:
                self._sequencer.suspend(
                    mode, f"The keys of the log have changed and cannot be read: {error.message}"
                )
            raise
