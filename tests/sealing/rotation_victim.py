"""A process that changes the key of the live log, and is killed on the way.

`python -m tests.sealing.rotation_victim POINT [SIGNED]`, see `tests.support.killed`. With a file of
a signed proposal it takes that approval, else it rotates the key alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from countersign.base.config import load_settings
from countersign.core.log.rotation import approve, rotate_log_key
from countersign.operate.bootstrap import open_deployment
from tests.sealing.victim import audited
from tests.support.killed import counted, run


async def _work(*signed: str) -> None:
    notes = [Path(file).read_bytes() for file in signed]  # noqa: ASYNC240 - nothing else runs
    async with open_deployment(load_settings()) as deployment:
        with counted():
            for note in notes:
                await approve(deployment.log, note)
            if not notes:
                await rotate_log_key(deployment.log)
            print("rotated", flush=True)  # noqa: T201 - for the test that started it
            await deployment.log.seal.settle()
            await deployment.log.seal.publish()


if __name__ == "__main__":
    sys.addaudithook(audited)
    run(_work)
