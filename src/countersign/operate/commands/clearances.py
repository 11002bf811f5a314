"""`countersign clearances` and `countersign accounts clearance`: keys and rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import click

from countersign.base.cli import room_command
from countersign.base.values import Mode, rfc3339
from countersign.core.clearances.facts_sql import get_rules, set_rules
from countersign.core.clearances.keys import ClearanceKey
from countersign.core.clearances.model import OVERRIDES_MAX, ClearanceRules
from countersign.core.clearances.room import Clearances
from countersign_evidence.cli.support import Duration, asking, field_lines, say, show

_DEFAULT: Final = ClearanceRules()


@click.group()
def clearances() -> None:
    """The keys that sign the tokens of clearances."""


@clearances.command("rotate-key")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), required=True)
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
@asking("Give the {mode} clearances a new signing key?")
@room_command(Clearances)
async def rotate_key(room: Clearances, mode: str, *, overlap: timedelta, at_once: bool) -> None:
    """Add a key that signs tokens after the overlap, and print its id.

    /.well-known/jwks.json contains the new key immediately, and the old key until its last token
    has expired. The overlap must be longer than your warehouses cache that file.
    """
    key = await room.keys.rotate(Mode(mode), timedelta(0) if at_once else overlap)
    say(f"The key is published now and signs from {rfc3339(key.signs_from)}.")
    show(_view(key), key.kid)


@clearances.command("keys")
@room_command(Clearances)
async def keys_(room: Clearances) -> None:
    """List the keys that sign tokens, the oldest of each mode first."""
    views = [_view(key) for mode in Mode for key in await room.keys.list(mode)]
    plain = "\n".join(f"{view['kid']}  signs from {view['signs_from']}" for view in views)
    show(views, plain)


@clearances.command("withdraw-key")
@click.argument("kid")
@asking("Invalidate every token that {kid} has signed?")
@room_command(Clearances)
async def withdraw_key(room: Clearances, kid: str) -> None:
    """Withdraw the key KID immediately: tokens that it has signed are no longer valid.

    Use this if someone else may have the key. Another key must already sign: rotate-key --at-once.
    """
    key = await room.keys.withdraw(kid)
    say(
        "/.well-known/jwks.json no longer contains the key. Cached copies are valid for five "
        "minutes."
    )
    show(_view(key), key.kid)


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
    "--paid-max-age",
    type=Duration(),
    default=_DEFAULT.paid_max_age,
    help="Maximum age of the acknowledgment of an order that was paid while it was cleared, 180d "
    "at most. Left out: 180d.",
)
@click.option(
    "--overrides-per-day",
    type=click.IntRange(0, OVERRIDES_MAX),
    default=0,
    help="How many manual overrides keys with clearances:override may make within 24 hours. "
    "Left out: 0.",
)
@click.option(
    "--product-class",
    type=click.Choice(["required", "optional"]),
    default="required",
    help="Whether a live order must name its product class. Left out: required.",
)
@click.option(
    "--order-reference",
    type=click.Choice(["required", "optional"]),
    default="required",
    help="Whether a live order must be named by order_reference. Left out: required.",
)
@room_command(Clearances)
async def set_(
    room: Clearances,
    /,
    account: str,
    *,
    product_class: str,
    order_reference: str,
    overrides_per_day: int,
    **periods: timedelta,
) -> None:
    """Set the rules of ACCOUNT (id or name), from its next clearance on.

    An option that is left out is set to its default, not kept.
    """
    rules = ClearanceRules(
        **periods,
        product_class_required=product_class == "required",
        order_reference_required=order_reference == "required",
        overrides_per_day=overrides_per_day,
    )
    account_id = await set_rules(room, account, rules)
    say(f"These rules apply to account {account_id} from now on.")
    _show(account_id, rules)


@clearance.command("show")
@click.argument("account")
@room_command(Clearances)
async def show_(room: Clearances, account: str) -> None:
    """Show the rules of ACCOUNT."""
    _show(*await get_rules(room, account))


def _view(key: ClearanceKey) -> dict[str, Any]:
    return {
        "kid": key.kid,
        "mode": key.mode.value,
        "created_at": rfc3339(key.created_at),
        "signs_from": rfc3339(key.signs_from),
    }


def _show(account_id: str, rules: ClearanceRules) -> None:
    demands = {
        name.removesuffix("_required"): "required" if demanded else "optional"
        for name, demanded in rules.demands().items()
    }
    view = {"account_id": account_id, **rules.seconds(), **demands}
    view |= {"overrides_per_day": rules.overrides_per_day}
    show(view, field_lines(view))
