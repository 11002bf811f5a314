"""What an order needs before it is paid, as the service says of its classes and its address."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.core.cache import cache

from countersign_client import CountersignError, errors
from countersign_django.conf import client, configuration

logger: Final = logging.getLogger("countersign_django")
LOGGED: Final = "It is in the log of countersign_django."
TERRITORIES: Final = {"AS", "GU", "MP", "PR", "VI"}
"""Countries in many shops, states of the Postal Service."""
KNOWN_SECONDS: Final = 600
"""How long an answer about an address counts: a page asks again with each press."""
_ZIP: Final = re.compile(r"([0-9]{5})[\s.\-\u2010-\u2015]*([0-9]{4})?[\s.\-\u2010-\u2015]*")


@contextmanager
def logged() -> Iterator[None]:
    """Log why a call failed, once: a buyer is not shown that the key of the shop is wrong."""
    try:
        yield
    except CountersignError as error:
        if LOGGED not in getattr(error, "__notes__", ()):
            logger.error("%s", error)  # noqa: TRY400 - a traceback says no more
            error.add_note(LOGGED)
        raise


class CannotSell(Exception):
    """This cart cannot be sold in one order, to this address, or not at all.

    The message is for the buyer, `code` for programs.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code: Final = code


@dataclass(frozen=True, kw_only=True)
class Needed:
    """The requirements of an order before it is paid."""

    notice_id: str
    product_class: str
    """The class; several sorted, with commas between."""
    shipping_zip: str
    identity: bool


def place_of(state: str, zip_code: str, country: str = "US") -> tuple[str, str]:
    """State and ZIP code as the Postal Service writes them; what was typed otherwise is helped.

    Raises CannotSell for an address that is not one, or outside of the United States.
    """
    country, state = country.strip().upper(), state.strip().upper()
    if country in TERRITORIES:
        country, state = "US", country
    if country != "US":
        message = "These products are sent to an address in the United States only."
        raise CannotSell("invalid_address", message)
    found = _ZIP.fullmatch(zip_code.strip())
    if found is None or not re.fullmatch("[A-Z]{2}", state):
        raise _wrong_address(state, zip_code)
    return state, "-".join(filter(None, found.groups()))


def _wrong_address(state: str, zip_code: str) -> CannotSell:
    return CannotSell(
        "invalid_address",
        f"Please look at state and ZIP code once more: \u201c{state} {zip_code}\u201d. "
        "A state has two letters, a ZIP code five digits, such as 94105 or 02134.",
    )


@logged()
def needs(
    product_classes: Collection[str],
    *,
    state: str,
    zip_code: str,
    residence_state: str = "",
    country: str = "US",
) -> Needed | None:
    """The requirements of an order of these classes to this place; None: nothing.

    `state` is the two-letter code of the Postal Service; territories may be countries. Without
    `residence_state` the residence is unknown, and unknown requirements count as needed. Asked once
    for each address: the answer is in Django's cache for KNOWN_SECONDS.

    Raises CannotSell, also for an address that is not one.
    """
    classes = sorted(set(product_classes))
    if not classes:
        return None
    state, zip_code = place_of(state, zip_code, country)
    conf = configuration()
    asked = (conf.base_url, conf.api_key, classes, state, zip_code[:5], residence_state)
    name = f"countersign-needs-{hashlib.sha256(repr(asked).encode()).hexdigest()}"
    answer = cache.get(name)
    try:
        answer = answer or client().requirements.retrieve(
            product_classes=classes,
            ship_to={"state": state, "zip": zip_code[:5]},
            residence_state=residence_state or None,
        )
    except errors.InvalidRequest as error:
        # The buyer's mistake, or, if a class cannot be one, the shop's.
        logger.warning("Refused as a wrong address: %s", error)
        raise _wrong_address(state, zip_code) from error
    cache.set(name, answer, KNOWN_SECONDS)
    if refused := [w.product_class or "" for w in answer.warnings if w.type == "not_sufficient"]:
        raise CannotSell("not_sufficient", f"Not shipped to buyers: {', '.join(refused)}.")
    # Unknown counts as required: only `not_required` means that nothing is needed.
    if answer.decision == "not_required":
        return None
    notices = [one.notice_id for one in answer.notices if one.required != "not_required"]
    if len(notices) != 1:
        raise CannotSell("not_together", "These products need an order each.")
    return Needed(
        notice_id=notices[0],
        product_class=",".join(classes),
        shipping_zip=zip_code,
        identity=answer.identity.required != "not_required",
    )
