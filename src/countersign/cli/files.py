"""Files that commands write: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from countersign.errors import InvalidArgument


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
