"""Forms of browsers, read alike by the pages of buyers and of staff, and their origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

from countersign.base.errors import InvalidRequest, UnsupportedMediaType
from countersign.base.http.body import DOOR_BYTES_MAX
from countersign.core.acknowledgments.model import Origin, resolve_browser
from countersign.core.checkout.room import Checkout
from countersign.core.gate.route import Call

FIELDS_MAX: Final = 2000
_FORM_TYPE: Final = b"application/x-www-form-urlencoded"


def browser(room: Checkout, call: Call) -> Origin:
    """Where the browser's own request came from."""
    return resolve_browser(
        call.raw_headers,
        peer=call.peer,
        header=room.client_ip_header,
        trusted_proxies=room.trusted_proxies,
    )


def address_of(room: Checkout, call: Call) -> str:
    """The address of a browser that is not signed in, as the configured proxies tell it.

    "" without any: then the connection's may be that of a proxy, and so everybody's.
    """
    return (browser(room, call).ip or "") if room.trusted_proxies else ""


async def read_door(room: Checkout, call: Call) -> Mapping[str, str]:
    """The fields of a form by which somebody signs in; it counts for the browser's address."""
    address = address_of(room, call)
    return await read_form(call, DOOR_BYTES_MAX, (address,) if address else ())


async def read_form(call: Call, most: int, owners: Sequence[str]) -> Mapping[str, str]:
    """The fields of a form of at most `most` bytes, which count for these owners.

    Raises:
        UnsupportedMediaType: the body is no form.
        InvalidRequest: it is not well formed, or has a field twice.
    """
    media_type = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type != _FORM_TYPE or call.read_body is None:
        raise UnsupportedMediaType
    try:
        fields = parse_qsl(
            (await call.read_body(most, owners)).decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=FIELDS_MAX,
        )
    except ValueError:
        raise InvalidRequest("The form is not well formed.") from None
    form = dict(fields)
    if len(form) != len(fields) or any("\x00" in value for value in form.values()):
        raise InvalidRequest("The form is not well formed.")
    return form
