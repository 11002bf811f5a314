"""The end of a checkout session reaches the vendor's webhook, signed, with its identifier alone."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from contextlib import ExitStack
from pathlib import Path

import standardwebhooks

from tests.checkout.buyer import Shop
from tests.http.backstage import Operator
from tests.support.service import Deployment, running_server
from tests.webhooks.receiver import running_receiver, until

ENDS = ("completed", "declined", "expired", "cancelled")


def test_each_end_that_is_an_event_is_delivered_once(tmp_path: Path) -> None:
    own = Deployment(data_dir=tmp_path / "data", settings={"WEBHOOK_ALLOW_PRIVATE": "true"})
    own.run("init")

    async def scenario(shop: Shop) -> None:
        post = shop.client.post
        async with running_receiver() as receiver:
            made = await to_thread(post, "/v1/webhook_endpoints", json={"url": receiver.url})
            buyers = [await to_thread(shop.buyer, expires_in_seconds=60) for _ in ENDS]
            await to_thread(buyers[0].acknowledge)
            await to_thread(buyers[1].decline)
            await to_thread(post, f"/v1/checkout_sessions/{buyers[3].id}/cancel", json={})
            await to_thread(post, "/v1/test/clock/advance", json={"seconds": 61})

            def ends() -> set[tuple[str, str]]:
                verify = standardwebhooks.Webhook(made.json()["secret"]).verify
                bodies = [verify(got.body, got.headers) for got in receiver.received]
                found = [b for b in bodies if b["type"].startswith("checkout_session.")]
                pairs = [(b["type"], b["data"].pop("checkout_session_id")) for b in found]
                assert len(pairs) == len({*pairs})
                assert [b["data"] for b in found] == [{}] * len(found)
                return {*pairs}

            types = [f"checkout_session.{end}" for end in ENDS]
            expected = {*zip(types, [buyer.id for buyer in buyers], strict=True)}
            await until(lambda: ends() >= expected)
            assert ends() == expected

    with (
        running_server(own) as server,
        Operator(own) as operator,
        operator.vendor(server) as vendor,
        ExitStack() as opened,
    ):
        asyncio.run(scenario(Shop(vendor, server, opened)))
