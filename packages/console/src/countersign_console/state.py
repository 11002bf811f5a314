"""State of the service: problems and remedies, logs, what is owed."""

from __future__ import annotations

from typing import Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Page
from countersign_console.visit import Visit

ON_THE_MACHINE: Final = {
    "upgrade": "countersign init",
    "backup": "countersign backup DIRECTORY",
    "restore": "countersign restore DIRECTORY",
    "migrate": "countersign migrate-database",
    "log_key": "countersign log rotate-key",
    "clearance_key": "countersign clearances rotate-key",
    "vault_key": "countersign vault rotate",
    "recover": "countersign log recover",
    "owner": "countersign staff link NAME",
}
"""Task that needs the machine itself → the command to type."""


class State(Page):
    """`state`: no acts here; the page shows the commands to type on the machine."""

    async def show(self, visit: Visit) -> PageReply:
        """The state as the API has it now."""
        standing = await visit.call("GET", "/v1/deployment")
        doctor = await visit.call("GET", "/v1/deployment/findings")
        return visit.show(
            "state.html",
            visit.words["page_state"],
            standing=standing,
            doctor=doctor,
            lines=ON_THE_MACHINE,
        )
