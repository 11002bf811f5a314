"""`countersign clearances` and `countersign accounts clearance`: keys and rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import click

from countersign.clearances.keys import ClearanceKey
from countersign.clearances.model import ClearanceRules
from countersign.clearances.room import Clearances
from countersign.clearances.settings import get_rules, set_rules
from countersign.cli.support import (
    Duration,
    command,
    confirm,
    field_lines,
    say,
    show,
    with_room,
)
from countersign.instant import rfc3339
from countersign.mode import Mode

_MODES: Final = click.Choice([mode.value for mode in Mode])
_DEFAULT: Final = ClearanceRules()
_SECOND: Final = timedelta(seconds=1)


@click.group()
def clearances() -> None:
    """The keys that sign the tokens of clearances."""


@clearances.command("rotate-key")
@click.option("--mode", type=_MODES, required=True)
@click.option(
    "--overlap",
    type=Duration(),
    default="1h",
    show_default=True,
    help="How long to publish the new key before it signs.",
)
@click.option(
    "--at-once", is_flag=True, help="Sign with the new key immediately; --overlap is ignored."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def rotate_key(mode: str, *, overlap: timedelta, at_once: bool, yes: bool, as_json: bool) -> None:
    """Add a key that signs tokens after the overlap, and print its id.

    /.well-known/jwks.json contains the new key immediately, and the old key until its last token
    has expired. The overlap must be longer than the time for which your warehouses cache that file.
    """
    confirm(f"Give the {mode} clearances a new signing key?", yes=yes)
    delay = timedelta(0) if at_once else overlap
    key = with_room(Clearances)(lambda room: room.keys.rotate(Mode(mode), delay))()
    say(f"The key is published now and signs from {rfc3339(key.signs_from)}.")
    show(_view(key), key.kid, as_json=as_json)


@clearances.command("keys")
@command
def keys_(*, as_json: bool) -> None:
    """List the keys that sign tokens, the oldest of each mode first."""
    views = [_view(key) for key in _keys()]
    plain = "\n".join(f"{view['kid']}  signs from {view['signs_from']}" for view in views)
    show(views, plain, as_json=as_json)


@clearances.command("withdraw-key")
@click.argument("kid")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def withdraw_key(kid: str, *, yes: bool, as_json: bool) -> None:
    """Withdraw the key KID immediately: tokens that it has signed are no longer valid.

    Use this if someone else may have the key. Another key must already sign: rotate-key --at-once.
    """
    confirm(f"Invalidate every token that {kid} has signed?", yes=yes)
    key = with_room(Clearances)(lambda room: room.keys.withdraw(kid))()
    say(
        "/.well-known/jwks.json no longer contains the key. Cached copies are valid for five "
        "minutes."
    )
    show(_view(key), key.kid, as_json=as_json)


@click.group()
def clearance() -> None:
    """The rules of an account for its clearances."""


@clearance.command("set")
@click.argument("account")
@click.option(
    "--acknowledgment-max-age",
    type=Duration(),
    default=_DEFAULT.acknowledgment_max_age,
    help="Maximum age of an acknowledgment when its order is cleared. Left out: 7d.",
)
@click.option(
    "--lifetime",
    type=Duration(),
    default=_DEFAULT.lifetime,
    help="How long a clearance is valid, 7d at most. Left out: 24h.",
)
@click.option(
    "--product-class",
    type=click.Choice(["required", "optional"]),
    default="required",
    help="Whether a live order must name its product class. Left out: required.",
)
@command
def set_(
    account: str,
    *,
    acknowledgment_max_age: timedelta,
    lifetime: timedelta,
    product_class: str,
    as_json: bool,
) -> None:
    """Set the rules of ACCOUNT (id or name), from its next clearance on.

    An option that is left out is set to its default, not kept.
    """
    rules = ClearanceRules(
        acknowledgment_max_age=acknowledgment_max_age,
        lifetime=lifetime,
        product_class_required=product_class == "required",
    )
    account_id = with_room(Clearances)(set_rules)(account, rules)
    say(f"These rules apply to account {account_id} from now on.")
    _show(account_id, rules, as_json=as_json)


@clearance.command("show")
@click.argument("account")
@command
def show_(account: str, *, as_json: bool) -> None:
    """Show the rules of ACCOUNT."""
    account_id, rules = with_room(Clearances)(get_rules)(account)
    _show(account_id, rules, as_json=as_json)


@with_room(Clearances)
async def _keys(room: Clearances) -> list[ClearanceKey]:
    return [key for mode in Mode for key in await room.keys.list(mode)]


def _view(key: ClearanceKey) -> dict[str, Any]:
    return {
        "kid": key.kid,
        "mode": key.mode.value,
        "created_at": rfc3339(key.created_at),
        "signs_from": rfc3339(key.signs_from),
    }


def _show(account_id: str, rules: ClearanceRules, *, as_json: bool) -> None:
    view = {
        "account_id": account_id,
        "acknowledgment_max_age_seconds": rules.acknowledgment_max_age // _SECOND,
        "lifetime_seconds": rules.lifetime // _SECOND,
        "product_class": "required" if rules.product_class_required else "optional",
    }
    show(view, field_lines(view), as_json=as_json)
