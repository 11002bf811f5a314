"""Serves the application with uvicorn instead of `countersign serve`: python -m … PORT."""

import asyncio
import sys

import uvicorn

from countersign.bootstrap import open_deployment
from countersign.config import load_settings
from countersign.server.app import App


async def main(port: int) -> None:
    """Serve until stopped."""
    async with open_deployment(load_settings()) as deployment:
        config = uvicorn.Config(App(deployment), host="127.0.0.1", port=port, lifespan="on")
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
