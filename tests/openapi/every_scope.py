"""A key with every scope that a key can have, one of which only a person gives."""

from __future__ import annotations

import asyncio

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.key import PEOPLE_SCOPES, Scope
from countersign.core.access.keys import create_key
from countersign.operate.bootstrap import open_deployment
from tests.support.service import Deployment


def key_of_a_person(deployment: Deployment, account: str) -> str:
    """Make a test key as the console does, beside the server."""
    scopes = frozenset(Scope) - PEOPLE_SCOPES

    async def make() -> str:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            write = opened.access.database.write
            made = await write(create_key, opened.access, account, Mode.TEST, scopes)
            return made.token

    return asyncio.run(make())
