"""A hosted acknowledgment, made by the room's own functions, as a checkout session makes one."""

from __future__ import annotations

import msgspec

from countersign.base.values import Mode
from countersign.core.access.clocks import REAL_TIME
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.acknowledge import begin, make_hosted, write_hosted
from countersign.core.acknowledgments.make import NewAcknowledgment
from countersign.core.acknowledgments.model import Submission, resolve_browser
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.process import Binding, Claim, Line, Process, Surface, Viewport

_OPENED, _INITIALED, _CHANGED, _REVIEWED = (
    f"2026-11-20T21:3{minute}:00.123Z" for minute in range(4)
)
PROCESS = Process(
    checkout_session="chk_01m7xdxbmvex7t29vh2x05yyyq",
    surface=Surface.PAGE,
    origin=None,
    rendered_digest="9097d72e6f2ef8647711257e6456ee7b845b058598918790a33a0c2829a8612d",
    locale="en",
    opened_at=_OPENED,
    lines=[
        Line(shown_at=_OPENED, initialed_at=_INITIALED, changed_at=None, changes=0),
        Line(shown_at=_OPENED, initialed_at=_INITIALED, changed_at=_CHANGED, changes=2),
        Line(shown_at=_OPENED, initialed_at=_INITIALED, changed_at=None, changes=0),
        Line(shown_at=_OPENED, initialed_at=_CHANGED, changed_at=None, changes=0),
    ],
    reviewed_at=_REVIEWED,
    agreement="I have read each line, and my initials are my own.",
    consent="I agree to receive and sign this notice in electronic form.",
    script=True,
    viewport=Viewport(width=360, height=740),
    binding=Binding.COOKIE,
    verification=None,
    claimed=[
        Claim(line=1, event="shown", at=_INITIALED),
        Claim(line=None, event="reviewed", at=_REVIEWED),
    ],
)
PROCESS_JSON = msgspec.to_builtins(PROCESS)
"""The same as a reader gets it."""


def session_of(account: str, mode: Mode = Mode.TEST) -> Principal:
    """The principal of a checkout session of this account."""
    return Principal(
        key_id="key_inside",
        account_id=account,
        mode=mode,
        scopes=frozenset(),
        credential="checkout_session",
    )


async def prepared(
    service: Opened, account: str, initials: list[str], process: Process = PROCESS
) -> NewAcknowledgment:
    """A hosted acknowledgment of the shipped notice, before the transaction that writes it."""
    (notice,) = await service.notices.registry.versions("ab1263")
    headers = [(b"x-forwarded-for", b"203.0.113.7"), (b"user-agent", b"Agent/1")]
    submission = Submission(
        initials_per_line=initials,
        session_id="cs_hosted",
        cbid="cb_hosted",
        notice_version=notice.content.version,
        origin=resolve_browser(
            headers, peer="198.51.100.1", header="x-forwarded-for", trusted_proxies=()
        ),
    )
    who = session_of(account)
    begun = await begin(service.acknowledgments, who, notice, submission, REAL_TIME)
    return await make_hosted(begun, process)


async def acknowledge_hosted(service: Opened, account: str) -> str:
    """Acknowledge the shipped notice as a checkout session does; gives the ack_id."""
    made = await prepared(service, account, ["JD", "J.D.", "jd", "JD"])
    await service.database.write(write_hosted, [made])
    return made.id
