"""A process that changes the key of the live log, and is killed on the way.

`python -m tests.sealing.rotation_victim POINT [SIGNED]`: it kills itself with SIGKILL as
`tests.sealing.victim` does. With a file of a signed proposal it takes that approval, else it
rotates the key alone.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.bootstrap import open_deployment
from countersign.config import load_settings
from countersign.log.rotation import approve, rotate_log_key
from countersign.mode import Mode
from tests.sealing import victim


async def _work(last: int, signed: bytes | None) -> None:
    async with open_deployment(load_settings()) as deployment:
        victim.begin(last)
        if signed is None:
            await rotate_log_key(deployment.log, Mode.LIVE)
        else:
            await approve(deployment.log, signed)
        print("rotated", flush=True)  # noqa: T201 - for the test that started it
        await deployment.log.seal.settle()
        await deployment.log.seal.publish()
        points = victim.end()
    print(f"points {points}", flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    event.listen(Engine, "before_cursor_execute", victim.point)
    event.listen(Engine, "commit", victim.point)
    sys.addaudithook(victim.audited)
    asyncio.run(_work(int(sys.argv[1]), Path(sys.argv[2]).read_bytes() if sys.argv[2:] else None))
