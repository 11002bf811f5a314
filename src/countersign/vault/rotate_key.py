"""Change the key-encryption key while servers run, without losing the key of any data key.

At each moment the file contains every key that wraps something, so that a rotation can be
interrupted anywhere and run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from countersign.errors import InvalidArgument, KeyRotationFailed
from countersign.vault import data_keys_sql
from countersign.vault.key_file import KeyFile
from countersign.vault.room import VaultRoom

_KEY_BYTES: Final = 32
_CHUNK: Final = 200
_SETTLE_SECONDS: Final = 2.0
"""A server that read the file just before it changed has stored what it wrapped by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """The id of the key that wraps now, and the number of data keys that were wrapped again."""

    current: bytes
    rewrapped: int


async def rewrap(room: VaultRoom, progress: Callable[[int], None]) -> int:
    """Wrap every data key with the first key-encryption key; the number of those that were not.

    `progress` gets the number so far.

    Raises:
        WrongKeyEncryptionKey: a key opens with none of the key-encryption keys.
    """
    total = 0
    while number := await room.vault.rewrap(_CHUNK):
        total += number
        progress(total)
    return total


async def rotate_key_encryption(room: VaultRoom, progress: Callable[[int], None]) -> Rotated:
    """Make a new key, wrap every data key with it, and remove the keys that wrap nothing.

    Raises:
        InvalidArgument: the key is in no file.
        KeyRotationFailed: another process rotates too, or still wraps with an older key. Nothing
            is lost: the file contains the older key too.
        WrongKeyEncryptionKey: a data key opens with none of the keys in the file.
    """
    if room.key_file is None:
        msg = (
            "The key-encryption key is not in a file. Put the new key first in the source "
            "of COUNTERSIGN_KEY_ENCRYPTION_KEY, and run `countersign vault rewrap`."
        )
        raise InvalidArgument(msg)
    file = KeyFile(room.key_file)
    with file.alone():
        new, old = room.access.entropy(_KEY_BYTES), file.read()
        file.replace([new, *old.values()])
        written = file.read()
        room.encryption.read_again()
        rewrapped = await rewrap(room, progress)
        await asyncio.sleep(_SETTLE_SECONDS)
        rewrapped += await rewrap(room, progress)
        used = await room.access.database.scan(data_keys_sql.counts)
        _remove_unused(file, written, used)
    return Rotated(current=next(iter(written)), rewrapped=rewrapped)


def _remove_unused(
    file: KeyFile, written: Mapping[bytes, bytes], used: Mapping[bytes, int]
) -> None:
    """Remove the keys from the file that wrap nothing, whatever else has changed it since.

    If it was changed by hand, for example, a key that is needed is added again.
    """
    now = file.read()
    current, first = next(iter(written)), next(iter(now))
    known = {**now, **written}
    kept = [id_ for id_ in known if id_ == first or used.get(id_)]
    file.replace([known[id_] for id_ in kept])
    if kept != [current]:
        msg = (
            f"The file holds the keys {', '.join(id_.hex() for id_ in kept)}: another "
            "process changed the file, or one of the old keys still wraps data keys. "
            "Nothing is lost; run `countersign vault rotate` again."
        )
        raise KeyRotationFailed(msg)
