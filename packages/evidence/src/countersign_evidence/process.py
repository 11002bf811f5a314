"""How a hosted acknowledgment was made: the value of its disclosure `process`.

The members are those of `spec/evidence-format.md`, in the order in which they are written. Readers
check the same types; the words that a member may have are the writer's duty.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

PROCESS: Final = "process"
"""The name of the disclosure."""

Time = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        max_length=24,  # without it, a newline at the end would be accepted
        extra_json_schema={"format": "date-time"},
    ),
]
"""A time of the service's own clock, in the form of `accepted_at`."""
Count = Annotated[int, Meta(ge=0)]


class Surface(StrEnum):
    """The surface that showed the notice."""

    PAGE = "page"
    COMPONENT = "component"


class Binding(StrEnum):
    """The binding of the person to the checkout session."""

    NONE = "none"
    LINK = "link"
    COOKIE = "cookie"
    PASSKEY = "passkey"
    IDENTITY_SESSION = "identity_session"


class Method(StrEnum):
    """How the initials of a line came."""

    TYPED = "typed"
    """The request had them for this line."""
    ADOPTED = "adopted"
    """The request named this line alone, without initials: those of the first line were taken."""


class Line(Struct, frozen=True, kw_only=True):
    """When the service served a line, and received initials for it."""

    shown_at: Time
    """The last time before the initials."""
    initialed_at: Time
    """The first initials."""
    changed_at: Time | None
    """When others were last received, if they were."""
    changes: Count
    """How often others were received."""
    method: Annotated[str, Meta(extra_json_schema={"enum": [*Method]})] | UnsetType = UNSET
    """`typed`: a request had the initials for this line. `adopted`: a request named this line, and
    the service took the initials that it had for the first line. Left out by releases that took
    typed ones alone."""


class Viewport(Struct, frozen=True, kw_only=True):
    """The size of the window in CSS pixels, as the client claims."""

    width: Count
    height: Count


class Claim(Struct, frozen=True, kw_only=True):
    """An event that the client claims, with the time when the service received the claim."""

    line: Count | None
    """Counted from 1."""
    event: str
    """Such as `shown` or `initialed`."""
    at: Time


class Process(Struct, frozen=True, kw_only=True):
    """How a hosted acknowledgment was made.

    `script`, `viewport` and `claimed` are claims of the client, and so are `surface`, `origin` and
    `rendered_digest` unless `surface` is `page`; the service observed the rest.
    """

    checkout_session: str
    """The checkout session."""
    surface: Annotated[str, Meta(extra_json_schema={"enum": [*Surface]})]
    """`page`: served by this service. `component`: an element in your page, as the client
    claims."""
    origin: str | None
    """The origin of the page around the component, as the client claims."""
    rendered_digest: str | None
    """Hex SHA-256 of the page as it was served, or of the component's file, as the client
    claims."""
    locale: str
    """The language of the interface."""
    opened_at: Time
    """When the notice was first served."""
    lines: Sequence[Line]
    """One for each line of the notice, in its order."""
    reviewed_at: Time | None
    """When the review step was served; null: it was not."""
    agreement: str
    """The sentence that was agreed to."""
    consent: str
    """The sentence of consent to the electronic form."""
    script: bool | None
    """Whether JavaScript ran, as the client claims."""
    viewport: Viewport | None
    binding: Annotated[str, Meta(extra_json_schema={"enum": [*Binding]})]
    """What tied the person to the session."""
    verification: str | None
    """The record of the identity check it belongs to."""
    claimed: Sequence[Claim]
    """What the client claims; the service did not observe it."""
