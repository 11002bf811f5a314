"""The last published checkpoints in an object store, shared by servers on several machines.

One object a mode. It is replaced only if it is still the one that was compared with the database:
of several servers that publish at once one wins, and the others compare again. Error messages are
our own: a store's messages may contain URLs and keys.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from countersign.base.errors import HeadsOverwritable, HeadUnavailable, InvalidConfiguration
from countersign.core.log.head_files import HeadFiles, Heads

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_SECONDS: Final = 1.5
"""Deadline of one request. Sealing makes up to three in a transaction, which counts as
stuck after five seconds."""
_PAUSE_SECONDS: Final = 2.0
"""Pause after a store did not respond: callers fail at once meanwhile."""
_CHECKED_SECONDS: Final = 60.0
_NO_VERSION: Final = {"e_tag": '"0"', "version": "1"}
_NO_BUCKET: Final = re.compile(r"NoSuchBucket|ContainerNotFound")
_REASONS: Final = re.compile(
    r"status code: (\d{3} [A-Za-z ]+)|<Code>(\w+)</Code>|(Connection refused|dns error|timed out)"
    r"|(invalid peer certificate: \w+)|(incorrectly configured region)"
)


class _Object(NamedTuple):
    content: bytes
    version: Mapping[str, str]
    """The version that a compare-and-set names."""


def open_heads(place: Path | str) -> Heads:
    """The heads in a directory, or in the object store of a URL."""
    return HeadStore(place) if isinstance(place, str) else HeadFiles(place)


class HeadStore(Heads):
    """`live.checkpoint` and `test.checkpoint`, named as files are: copying these moves them."""

    def __init__(self, url: str) -> None:
        """Connects to nothing yet. InvalidConfiguration: the URL or its variables are wrong.

        Credentials are in the variables that the store's own tools use, such as AWS_….
        """
        super().__init__(url)
        self._store = _open(url)
        # The response may never come: the caller continues without it.
        self._pool = ThreadPoolExecutor(2, "countersign-heads")
        self._known: dict[str, _Object] = {}
        self._away_until = self._checked_until = float("-inf")
        self._trouble = ""

    def _swap(self, name: str, content: bytes, over: bytes | None) -> bool:
        self.check()
        if over is None:
            return self._write(name, content, "create")
        # The version that was read together with this content, even of a damaged one.
        found = self._known.get(name)
        if found is None or found.content != over:
            self._get(name)
            found = self._known.get(name)
        if found is None or found.content != over:
            return False
        return self._write(name, content, found.version)

    def check(self) -> None:
        """Find out whether a checkpoint could be kept: not more often than once a minute.

        HeadsOverwritable: the store ignores conditions of writes; the head could go backwards.
        """
        if time.monotonic() < self._checked_until:
            return
        self._write("probe", b"\n", "overwrite")
        if self._write("probe", b"", "create") or self._write("probe", b"", _NO_VERSION):
            raise HeadsOverwritable(
                f"The object store of {self._where} (COUNTERSIGN_LOG_HEAD_DIR) ignores the "
                "conditions of writes (If-Match, If-None-Match): servers would overwrite each "
                "other's checkpoints. Use a store that has them, or a directory that all servers "
                "share."
            )
        self._checked_until = time.monotonic() + _CHECKED_SECONDS

    def _get(self, name: str) -> bytes | None:
        def get() -> _Object | None:
            import obstore  # noqa: PLC0415 - an optional package

            try:
                found = obstore.get(self._store, name)
                content = bytes(found.bytes())
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise
                return None
            version = {k: str(v) for k in _NO_VERSION if (v := found.meta.get(k)) is not None}
            return _Object(content, version)

        found: _Object | None = self._ask(get)
        if found is None:
            self._known.pop(name, None)
            return None
        self._known[name] = found
        return found.content

    def _write(self, name: str, content: bytes, mode: Any) -> bool:  # noqa: ANN401 - obstore.PutMode
        def put() -> bool:
            import obstore  # noqa: PLC0415 - an optional package
            from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

            try:
                obstore.put(self._store, name, content, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

        self._known.pop(name, None)
        return bool(self._ask(put))

    def _ask(self, what: Callable[[], Any]) -> Any:  # noqa: ANN401 - what it returns
        if time.monotonic() < self._away_until:
            raise self._unavailable(self._trouble)
        try:
            return self._pool.submit(what).result(_SECONDS)
        except TimeoutError:
            self._trouble = f"no response within {_SECONDS} seconds"
        except Exception as error:  # noqa: BLE001 - whatever it is, no checkpoint can be kept
            said = (next(filter(None, found)) for found in _REASONS.findall(str(error)))
            self._trouble = ", ".join(dict.fromkeys(said)) or type(error).__name__
        self._away_until = time.monotonic() + _PAUSE_SECONDS
        raise self._unavailable(self._trouble)

    def _unavailable(self, why: str) -> HeadUnavailable:
        self._checked_until = float("-inf")
        return HeadUnavailable(
            f"The last published checkpoints in {self._where} (COUNTERSIGN_LOG_HEAD_DIR) cannot be "
            f"read or written: {why}."
        )


def _open(url: str) -> ObjectStore:
    try:
        from obstore import store  # noqa: PLC0415 - an optional package
        from obstore.exceptions import BaseError  # noqa: PLC0415
    except ImportError:
        raise InvalidConfiguration(
            f"COUNTERSIGN_LOG_HEAD_DIR: {url} needs the package obstore: "
            "pip install 'obstore>=0.12'."
        ) from None
    try:
        # Plain HTTP is set by the variable that obstore reads, which options would hide.
        return store.from_url(
            url,
            client_options={
                "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",
                "timeout": timedelta(seconds=_SECONDS + 0.5),  # after the caller's
            },
            retry_config={
                "max_retries": 1,
                "retry_timeout": timedelta(seconds=_SECONDS / 2),
                "backoff": {"init_backoff": timedelta(milliseconds=50)},
            },
        )
    except (BaseError, ValueError) as error:
        raise InvalidConfiguration(
            f"COUNTERSIGN_LOG_HEAD_DIR: {url} and the variables of its store do not go together "
            f"({type(error).__name__}). See docs/configuration.md."
        ) from None
