"""Files that commands write atomically; and the policies given to commands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import click

from countersign_evidence.errors import InvalidArgument, files_refused_as, refused_as
from countersign_evidence.note import NOTE_BYTES_MAX
from countersign_evidence.policy import POLICY_BYTES_MAX, Policy, parse_policy

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
"""The type of an argument or option that is a file which is there."""


def read_file(file: Path, most: int = -1) -> bytes:
    """The bytes of a file; at most `most` and one more.

    Raises InvalidArgument if it cannot be read.
    """
    with files_refused_as(InvalidArgument, f"{file} cannot be read"), file.open("rb") as opened:
        return opened.read(most + 1 if most >= 0 else -1)


def read_policy(file: Path) -> Policy:
    """The policy in a file. Raises InvalidArgument if it is none."""
    with refused_as(InvalidArgument, f"{file} is not a policy"):
        return parse_policy(read_file(file, POLICY_BYTES_MAX), any_kind=True)


def read_histories(file: Path | None) -> Sequence[bytes]:
    """The history of a log's keys in a file, if there is one. Raises InvalidArgument."""
    return () if file is None else (read_file(file, NOTE_BYTES_MAX),)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file, and rename it at the end of the block.

    After an error, an existing file is unchanged.

    Raises InvalidArgument if it cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise InvalidArgument(f"{path} is not a file.")
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with draft.open("wb") as target:
            yield target
        draft.replace(path)
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            draft.unlink()
