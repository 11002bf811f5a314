"""The cost of all about one buyer: ``python -m bench.export``.

An embedded database with so many acknowledgments of others, and a buyer with so many orders, each
with initials and a decision.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.calls import Server
from bench.fill import fill
from bench.options import LASTING
from bench.plan import NOTICE_ID
from bench.servers import ZIP, Installation, install
from countersign.base.config import load_settings
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.privacy.export import all_about, packed
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App


def main() -> None:
    """Fill, measure, and print the times."""
    parser = argparse.ArgumentParser(prog="python -m bench.export", description=__doc__)
    parser.add_argument("--stored", type=int, default=1_000_000)
    parser.add_argument("--orders", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work-dir", type=Path, default=LASTING if LASTING.is_dir() else None)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="countersign-export-", dir=options.work_dir) as name:
        installed = install(Path(name), None, (str(Path(sys.executable).parent / "countersign"),))
        asyncio.run(fill(installed, options.stored, timedelta(days=13)))
        asyncio.run(_measured(installed, options))


async def _measured(installed: Installation, options: argparse.Namespace) -> None:
    settings = {**installed.environment, "COUNTERSIGN_RATE_LIMIT": "off"}
    async with open_deployment(load_settings(settings)) as deployment:
        app = App(deployment)
        server = Server(app, installed.key)
        for orders in options.orders:
            cbid = await _buyer(server, orders)
            times, size, found = list[float](), 0, dict[str, Any]()
            for _ in range(options.rounds):
                begun = time.process_time()
                found = await all_about(deployment.privacy, cbid, DEPLOYMENT)
                size = len(await packed(found, "en"))
                times.append((time.process_time() - begun) * 1000)
            assert len(found["orders"]) == orders
            sys.stdout.write(
                f"{options.stored:,} of others, {orders:,} orders of the buyer: "
                f"{median(times):.0f} ms of processor time, first {times[0]:.0f} ms, "
                f"{size:,} bytes\n"
            )
            sys.stdout.flush()


async def _buyer(server: Server, orders: int) -> str:
    """A buyer with so many orders."""
    verify = {"provider_identity_session_id": f"of {orders}", "shipping_zip": ZIP}
    made = await server.ask("POST", "/v1/buyers/verify", verify | {"test_mode": True})
    notice = await server.ask("GET", f"/v1/notices/{NOTICE_ID}")
    for number in range(orders):
        named = {
            "cbid": made["cbid"],
            "session_id": f"session {orders} {number}",
            "order_reference": f"order {orders} {number}",
        }
        own = named | {"initials_per_line": ["JD"] * len(notice["bullets"])}
        ack = await server.ask("POST", f"/v1/notices/{NOTICE_ID}/acknowledge", own)
        decided = named | {"ack_id": ack["ack_id"], "shipping_zip": ZIP}
        await server.ask("POST", "/v1/clearances", decided | {"product_class": "accessory"})
    return str(made["cbid"])


if __name__ == "__main__":
    main()
