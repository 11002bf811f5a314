"""A process that completes a checkout session, and is killed on the way.

`python -m tests.checkout.victim POINT TOKEN`, see `tests.support.killed`. It prints the `ack_id` as
soon as it is answered.
"""

from __future__ import annotations

from countersign.base.config import load_settings
from countersign.core.checkout import sessions
from countersign.hosted.pages import buyer
from countersign.operate.bootstrap import open_deployment
from countersign_evidence.process import Surface
from tests.clearances.desk import NO_ONE
from tests.support.killed import counted, run


async def _work(token: str) -> None:
    async with open_deployment(load_settings()) as deployment:
        room = deployment.checkout
        session = await sessions.session_of_token(room, token.encode())
        notice = await buyer.notice_of(room, session)
        initials = ["AB"] * len(notice.content.bullets)
        with counted():
            session = await buyer.show(room, session, notice, Surface.PAGE, None, "en")
            session = await buyer.initial(room, session, notice.digest, initials, NO_ONE.client)
            session = await buyer.review(room, session, "en")
            session = await buyer.accept(room, session, NO_ONE)
    print(session.ack_id, flush=True)  # noqa: T201 - for the test that started it


if __name__ == "__main__":
    run(_work)
