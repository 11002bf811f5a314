"""A process that acknowledges, seals and publishes once, and is killed on the way.

`python -m tests.sealing.victim POINT ACCOUNT`, see `tests.support.killed`. A step in replacing a
head file is a point, too. It prints the id of each acknowledgment that has been answered for.
"""

from __future__ import annotations

import sys
from typing import Any

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.model import Submission
from countersign.operate.bootstrap import open_deployment
from tests.cli.evidence import NO_ONE
from tests.support.killed import counted, point, run


def audited(name: str, arguments: tuple[Any, ...]) -> None:
    if name in {"open", "os.rename"} and "heads" in str(arguments[0]):
        point()


async def _work(account: str) -> None:
    principal = Principal(
        key_id="key_of_this_test",
        account_id=account,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )
    submission = Submission(
        initials_per_line=["A", "B", "C", "D"],
        session_id="cs_1",
        cbid=None,
        notice_version=None,
        origin=NO_ONE,
    )
    async with open_deployment(load_settings()) as deployment:
        notice = await deployment.notices.registry.in_force("ab1263", Mode.TEST)
        with counted():
            receipt = await acknowledge(deployment.acknowledgments, principal, notice, submission)
            print(receipt.id, flush=True)  # noqa: T201 - for the test that started it
            await deployment.log.seal.settle()
            await deployment.log.seal.publish()


if __name__ == "__main__":
    sys.addaudithook(audited)
    run(_work)
