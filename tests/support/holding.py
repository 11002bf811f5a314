"""Legal holds of the deployment, as an operator places and releases them on the machine."""

from __future__ import annotations

from countersign.core.access.reach import DEPLOYMENT
from countersign.core.privacy.holds import place, release
from countersign.core.privacy.model import Hold
from countersign.core.privacy.room import Privacy
from tests.support.acts import done


async def place_hold(privacy: Privacy, subject: str, reason: str) -> Hold:
    return await done(place, privacy, DEPLOYMENT, subject, reason)


async def release_hold(privacy: Privacy, hold_id: str) -> None:
    """End it, without carrying out what waited for that."""
    await done(release, privacy, hold_id, DEPLOYMENT)
