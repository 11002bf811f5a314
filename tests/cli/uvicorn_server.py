"""Serves the application with uvicorn instead of `countersign serve`: python -m … PORT."""

import asyncio
import sys

import uvicorn

from countersign.base.config import load_settings
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App

GRACE_SECONDS = 1
"""Otherwise it would wait for streams to end, which may take minutes."""


async def main(port: int) -> None:
    """Serve until stopped."""
    async with open_deployment(load_settings()) as deployment:
        config = uvicorn.Config(
            App(deployment),
            host="127.0.0.1",
            port=port,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
