"""An act of staff that was interrupted after its transaction: a second press does no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from countersign.base.values import Mode
from countersign.core.access.keys import create_key
from countersign.core.access.reach import Reach
from countersign.core.access.role import Role
from countersign.core.privacy.requests import carry_out_waiting
from countersign.staff.acts import erasures, holds
from tests.people.crew import Console, in_console
from tests.support.acts import done

pytestmark = pytest.mark.one_engine
KEY: Final = "a-key-of-one-form"


class Interrupted(Exception):
    """Stops the server as a signal does."""


async def stop(*_: object, **__: object) -> Any:  # noqa: ANN401 - it returns nothing
    raise Interrupted


def test_an_erasure_is_shown_again_although_its_server_stopped_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its response is kept in its transaction; of copies it says then that they may remain."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        access = console.deployment.access
        made = await done(create_key, access, account, Mode.TEST)
        asked = {"provider_identity_session_id": "session-1", "shipping_zip": "94105"}
        headers = {"authorization": f"Bearer {made.token}", "content-type": "application/json"}
        body = json.dumps(asked | {"test_mode": True}).encode()
        buyer = await console.http("POST", "/v1/buyers/verify", headers, body)
        assert buyer.status == 200, buyer.body
        cbid = json.loads(buyer.body)["cbid"]
        person = await console.person("Cora", Role.COMPLIANCE)
        here = {"account": account, "mode": "test", "idempotency_key": KEY}
        erase = {"subject": cbid}
        with monkeypatch.context() as patched:
            patched.setattr(erasures, "destroy_copies", stop)
            failed = await console.ask(person.session, "/v1/erasures", "POST", body=erase, **here)
            assert failed.status == 500
        again = [
            await console.ask(person.session, "/v1/erasures", "POST", body=erase, **here)
            for _ in range(2)
        ]
        assert [one.status for one in again] == [200, 200]
        assert again[0].data == again[1].data
        assert (again[0].data["buyer"], again[0].data["copies_remain"]) == (True, True)

    in_console(tmp_path, work)


def test_an_interrupted_close_can_be_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holds have ended; what waited for that is erased by the second press."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        person = await console.person("Cora", Role.COMPLIANCE)
        here = {"account": account, "mode": "test"}
        orders = [{"subject": account, "reason": "case 1"}]
        opened = await console.ask(
            person.session, "/v1/matters", "POST", body={"name": "A", "orders": orders}, **here
        )
        path = f"/v1/matters/{opened.data['matter_id']}/release"
        with monkeypatch.context() as patched:
            patched.setattr(holds, "carry_out_waiting", stop)
            failed = await console.ask(
                person.session, path, "POST", body={}, idempotency_key=KEY, **here
            )
            assert failed.status == 500
        calls = []

        async def counted(room: Any, reach: Reach) -> list[str]:  # noqa: ANN401 - as it takes
            calls.append(1)
            return await carry_out_waiting(room, reach)

        monkeypatch.setattr(holds, "carry_out_waiting", counted)
        again = [
            await console.ask(person.session, path, "POST", body={}, idempotency_key=KEY, **here)
            for _ in range(2)
        ]
        assert [one.status for one in again] == [200, 200]
        assert again[0].data == again[1].data
        assert len(calls) == 1

    in_console(tmp_path, work)
