"""A process that starts and follows an identity check, and is killed on the way.

`python -m tests.checkout.checks_victim POINT SESSION`, see `tests.support.killed`.
"""

from __future__ import annotations

import asyncio

from countersign.base.config import load_settings
from countersign.core.checkout import store
from countersign.hosted.pages import identity
from countersign.operate.bootstrap import open_deployment
from tests.checkout.checks import submit
from tests.support.killed import counted, run


async def _work(session_id: str) -> None:
    async with open_deployment(load_settings()) as deployment:
        room = deployment.checkout
        session = await store.find_by_id(room, session_id)
        assert session is not None
        with counted():
            session = await identity.begin(room, session)
            assert session.asked.check is not None
            await asyncio.to_thread(submit, session.asked.check.url, "verified")
            await identity.follow(room, session)


if __name__ == "__main__":
    run(_work)
