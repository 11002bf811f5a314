"""The files of keys: made once, replaced whole, and changed by one process at a time.

Rotating changes the key-encryption key while servers run, without losing the key of any data key:
at each moment the file contains every key that wraps something, so that a rotation can be
interrupted anywhere and run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from countersign.base.db import schema
from countersign.base.errors import InvalidArgument, KeyRotationFailed
from countersign.base.files import key_text, write_key_file
from countersign.base.values import Entropy
from countersign.core.vault.key_encryption import (
    KEY_BYTES,
    KeyRing,
    key_id,
    key_source,
    parse_keys,
)
from countersign.core.vault.vault import VaultRoom, count_keys
from countersign_evidence.files import locked, replace_file

_VALUE: Final = "vault"
_CHUNK: Final = 200
_SETTLE_SECONDS: Final = 2.0
"""A server that read the file just before the change has stored its wrapped keys by then."""


def _keys_in(path: Path) -> Mapping[bytes, bytes]:
    """The key-encryption keys in a file by their ids; the first one wraps."""
    return {key_id(key): key for key in parse_keys(key_source(f"file:{path}")())}


def _replace(path: Path, keys: Iterable[bytes]) -> None:
    """Replace the content: at each moment the old one is there, or the new one, whole."""
    replace_file(path, "".join(map(key_text, keys)).encode("ascii"))


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Until the block ends, no other process changes a file of keys in this way."""
    try:
        # The key file itself is replaced, so the lock is a file next to it.
        with locked(path.with_name(f"{path.name}.lock")):
            yield
    except BlockingIOError:
        raise KeyRotationFailed(
            f"Another command is replacing the key in {path}. Wait until it ends."
        ) from None
    except OSError as error:
        raise KeyRotationFailed(f"{path} cannot be replaced: {error.strerror}.") from error


def key_file(uri: str) -> Path | None:
    """The file that a source of keys names; None if it is not a file."""
    scheme, _, rest = uri.partition(":")
    return Path(rest) if scheme == "file" else None


def make_first_key(source: str, url: URL, entropy: Entropy) -> None:
    """Make the key file of a new deployment; the database notes which key was the first.

    WrongKeyEncryptionKey if the file is missing, and the database is not new.
    """
    path = key_file(source)
    if path is not None and not path.exists() and not schema.has_value(url, _VALUE):
        write_key_file(path, key_text(entropy(KEY_BYTES)))
    schema.stored_value(url, _VALUE, KeyRing(key_source(source), entropy).ids[0])


async def rewrap(room: VaultRoom, progress: Callable[[int], None]) -> int:
    """Wrap every data key with the first key-encryption key; returns the number of changed ones.

    `progress` gets the number so far.
    """
    total = 0
    while number := await room.vault.rewrap(_CHUNK):
        total += number
        progress(total)
    return total


async def rotate_key_encryption(
    room: VaultRoom, progress: Callable[[int], None]
) -> tuple[bytes, int]:
    """Make a new key, wrap every data key with it, and remove the keys that wrap nothing.

    The id of the new key, and the number of data keys. KeyRotationFailed if another process rotates
    too, or still wraps with an older key: nothing is lost, the file contains the older key too.
    """
    if room.key_file is None:
        raise InvalidArgument(
            "The key-encryption key is not in a file. Put the new key first in the source "
            "of COUNTERSIGN_KEY_ENCRYPTION_KEY, and run `countersign vault rewrap`."
        )
    file = room.key_file
    with _changing(file):
        new, old = room.access.entropy(KEY_BYTES), _keys_in(file)
        _replace(file, [new, *old.values()])
        written = _keys_in(file)
        room.encryption.read_again()
        rewrapped = await rewrap(room, progress)
        await asyncio.sleep(_SETTLE_SECONDS)
        rewrapped += await rewrap(room, progress)
        _remove_unused(file, written, await room.access.database.scan(count_keys))
    return next(iter(written)), rewrapped


def _remove_unused(file: Path, written: Mapping[bytes, bytes], used: Mapping[bytes, int]) -> None:
    """Remove the keys from the file that wrap nothing, whatever else has changed it since.

    If it was changed by hand, for example, a key that is needed is added again.
    """
    now = _keys_in(file)
    current, first = next(iter(written)), next(iter(now))
    known = {**now, **written}
    kept = [id_ for id_ in known if id_ == first or used.get(id_)]
    _replace(file, [known[id_] for id_ in kept])
    if kept != [current]:
        raise KeyRotationFailed(
            f"The file holds the keys {', '.join(id_.hex() for id_ in kept)}: another "
            "process changed the file, or one of the old keys still wraps data keys. "
            "Nothing is lost; run `countersign vault rotate` again."
        )
