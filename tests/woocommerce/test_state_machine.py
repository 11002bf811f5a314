"""The pure function in which a shop's will meets the decision of the service, as a table."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from tests.woocommerce.shops import command
from tests.woocommerce.wordpress import PLUGIN

pytestmark = pytest.mark.php

WANTED: Final = ("unpaid", "hold", "paid", "done", "over")
SAID: Final = (
    *("", "none", "changed", "open", "undecided", "cleared", "overridden", "refused", "declined"),
    *("expired", "cancelled", "not_needed"),
)
YES: Final = {"", "cleared", "overridden", "not_needed"}
CALL: Final = r"""
define('ABSPATH', '/');
require $argv[1];
$rows = json_decode(stream_get_contents(STDIN), true);
foreach ($rows as &$row) {
    $row = Countersign\WooCommerce\State_Machine::next($row[0], $row[1]);
}
echo json_encode($rows);"""


def case(was: str, is_: str, **more: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """From `unpaid cleared` to `paid cleared`: what was wanted and said, and what is now."""
    (wanted, _, said), (wants, _, says) = was.partition(" "), is_.partition(" ")
    before = {"wants": wanted, "state": said, "session": "cs_1"}
    now = {"wants": wants, "state": says, "moved": wanted != wants, "session": "cs_1"}
    now |= {"open": says == "open", "fresh": True, "asked": False, "away": False}
    return before, now | more


def following(rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the plugin's function makes of these, without WordPress."""
    line = [command("php"), "-r", CALL, str(PLUGIN / "includes" / "state-machine.php")]
    done = subprocess.run(line, input=json.dumps(rows), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(json.loads(done.stdout))


def words_of(next_: dict[str, Any]) -> str:
    """`ask`, or the state to store and what is done."""
    if next_["ask"]:
        return "ask"
    acts = [name for name in ("hold", "end", "note", "report") if next_[name]]
    return " ".join([next_["state"] or "-", *acts, *next_["mails"]])


ASKED: Final = {"asked": True}
AWAY: Final = {"asked": True, "away": True}
TABLE: Final = (
    # Placed.
    (case("unpaid ", "unpaid none"), "none"),
    (case("unpaid none", "unpaid open"), "open note"),
    (case("unpaid open", "unpaid open", session="cs_2"), "open note"),
    (case("unpaid open", "unpaid cleared"), "cleared note cleared"),
    (case("unpaid cleared", "unpaid cleared"), "cleared"),
    (case("unpaid open", "unpaid refused"), "refused note"),
    (case("unpaid cleared", "unpaid changed"), "changed note"),
    (case("unpaid ", "unpaid "), "-"),
    # Paid.
    (case("unpaid cleared", "paid cleared"), "cleared report"),
    (case("unpaid cleared", "paid cleared", fresh=False), "ask"),
    (case("unpaid cleared", "paid cleared", fresh=False, **ASKED), "cleared report"),
    (case("unpaid cleared", "paid cleared", fresh=False, **AWAY), "cleared hold"),
    (case("unpaid none", "paid none"), "ask"),
    (case("unpaid none", "paid none", **ASKED), "none hold notice"),
    (case("unpaid cleared", "paid refused", **ASKED), "refused hold note stopped"),
    (case("unpaid refused", "paid refused", **ASKED), "refused hold"),
    (case("unpaid ", "paid "), "- report"),
    (case("hold cleared", "paid cleared"), "cleared report"),
    (case("unpaid cleared", "hold cleared"), "cleared"),
    (case("unpaid none", "hold none"), "none notice"),
    (case("unpaid refused", "hold refused"), "refused"),
    (case("hold none", "hold cleared"), "cleared note"),
    # Refused, and then with a manual override: released like a cleared one, and never reported.
    (case("hold refused", "hold overridden"), "overridden note"),
    (case("unpaid refused", "unpaid overridden"), "overridden note cleared"),
    (case("hold overridden", "paid overridden"), "overridden"),
    (case("unpaid overridden", "paid overridden", fresh=False, **ASKED), "overridden"),
    (case("paid overridden", "done overridden"), "ask"),
    (case("paid overridden", "done overridden", **ASKED), "overridden"),
    (case("hold overridden", "paid refused", **ASKED), "refused hold note stopped"),
    (case("paid overridden", "paid changed"), "changed hold note notice stopped"),
    # Changed after the payment.
    (case("paid cleared", "paid changed"), "changed hold note notice stopped"),
    (case("paid not_needed", "paid changed"), "changed hold note notice stopped"),
    (case("hold cleared", "hold changed"), "changed note notice stopped"),
    (case("hold changed", "hold changed"), "changed"),
    (case("paid cleared", "paid refused"), "refused hold note stopped"),
    (case("paid ", "paid none"), "ask"),
    (case("paid ", "paid none", **ASKED), "none hold notice"),
    (case("paid cleared", "paid cleared"), "cleared"),
    # Shipped.
    (case("paid cleared", "done cleared"), "ask"),
    (case("paid cleared", "done cleared", **ASKED), "cleared"),
    (case("paid cleared", "done refused", **ASKED), "refused hold note stopped"),
    (case("paid cleared", "done cleared", **AWAY), "cleared hold"),
    (case("unpaid cleared", "done cleared", **ASKED), "cleared report"),
    (case("done cleared", "done changed"), "cleared"),
    (case("done cleared", "done refused"), "refused note stopped"),
    (case("done refused", "done refused"), "refused"),
    (case("done ", "done none"), "-"),
    (case("done cleared", "paid changed", **ASKED), "changed hold note notice stopped"),
    # Cancelled, trashed, deleted, refunded.
    (case("unpaid open", "over open"), "- end note"),
    (case("hold open", "over open"), "- end note"),
    (case("unpaid cleared", "over cleared"), "cleared"),
    (case("over cleared", "over changed"), "cleared"),
    (case("over ", "over cancelled"), "-"),
    (case("over ", "unpaid cancelled"), "cancelled note"),
    # Copied: another order's data do not count.
    (case("unpaid ", "unpaid none", session=""), "none"),
    (case("paid cleared", "paid none", **ASKED), "none hold notice stopped"),
)


def test_each_row_of_the_table_has_its_consequences() -> None:
    """Status, note, mails, session and report follow from what is wanted and what is said."""
    found = [words_of(next_) for next_ in following([row for row, _ in TABLE])]
    assert found == [words for _, words in TABLE]


def _every_case() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for wanted, said, wants, says in itertools.product(WANTED, SAID, WANTED, SAID):
        for asked, away, fresh in itertools.product((False, True), repeat=3):
            if asked or not away:
                flags = {"asked": asked, "away": away, "fresh": fresh}
                yield case(f"{wanted} {said}", f"{wants} {says}", **flags)


def test_no_combination_lets_an_uncleared_order_be_paid_or_completed() -> None:
    """It asks once, and neither mails for the notice of a cleared order nor reports a held one."""
    rows = [*_every_case()]
    for (was, now), next_ in zip(rows, following(rows), strict=True):
        goes = now["wants"] == "paid" or (now["moved"] and now["wants"] == "done")
        if next_["ask"]:
            assert (now["asked"], goes) == (False, True)
            continue
        yes = now["state"] in YES and not now["away"]
        assert next_["hold"] == (goes and not yes), (was, now)
        if now["wants"] == "done" and now["moved"] and now["state"]:
            assert now["asked"]
        assert not (next_["hold"] and next_["report"])
        assert not (next_["report"] and next_["state"] == "overridden")
        assert not ("notice" in next_["mails"] and now["state"] in YES)
        assert next_["end"] == (now["wants"] == "over" and now["open"])
