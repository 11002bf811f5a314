"""The thread that makes documents, and its fair queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from countersign.base.errors import Overloaded
from countersign.base.snapshot import KeyedLocks

WAITING_MAX: Final = 32
"""How many of one owner may wait while one of its documents is being made."""
_RETRY_SECONDS: Final = 5


class Certificates:
    """Makes documents in a separate thread, for each account in turn.

    No process is needed: the compiler releases the interpreter (measured with typst 0.15: a
    thread that counts meanwhile keeps 94 % of its pace).
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="countersign-certificate")
        self._locks = KeyedLocks(WAITING_MAX, _RETRY_SECONDS)
        self._closed = False

    async def run(self, make: Callable[[], bytes], owner: Hashable) -> bytes:
        """Make a file; however many an owner asks for, another waits for one of them at most.

        Raises:
            Overloaded: too many of this owner wait.
        """
        async with self._locks.turn(owner):
            if self._closed:
                raise Overloaded(retry_after=_RETRY_SECONDS)
            return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def close(self) -> None:
        """Cancel waiting documents, and return when the current one is done."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
