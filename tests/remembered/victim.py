"""A process in which a remembered buyer passes, and which is killed on the way.

`python -m tests.remembered.victim POINT SESSION COOKIE`, see `tests.support.killed`. It acts as the
page does once the buyer has agreed.
"""

from __future__ import annotations

from countersign.base.config import load_settings
from countersign.core.checkout import store
from countersign.hosted.pages import identity
from countersign.hosted.remembered import inform, use_cookie
from countersign.operate.bootstrap import open_deployment
from tests.support.killed import counted, run


async def _work(session_id: str, value: str) -> None:
    async with open_deployment(load_settings()) as deployment:
        room = deployment.checkout
        session = await store.find_by_id(room, session_id)
        assert session is not None
        zip_ = session.asked.shipping_zip
        with counted():
            session = await store.count_consent(room, session)
            known = await use_cookie(room.remembered, session.mode, value)
            assert known is not None
            informing = await inform(room.remembered, session.account_id, known, zip_)
            await identity.remembered(room, session, informing, known.kind)


if __name__ == "__main__":
    run(_work)
