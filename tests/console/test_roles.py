"""Each role on each page: visible elements and buttons, against a table from docs/console.md."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from countersign.core.access.role import Role
from countersign_console.pages import PAGES, SCOPES
from tests.checkout.surfer import Page
from tests.console.visitor import Vendor, Visitor, places
from tests.people.crew import Console, in_console
from tests.people.test_roles import ALLOWED

pytestmark = pytest.mark.one_engine

# a: sees and acts. l: sees. -: neither. As docs/console.md says it in words.
# page                 owner developer compliance support auditor
ACCOUNT: Final = """
orders                 a     a         a          l       l
reviews                a     -         a          -       l
holds                  a     -         a          -       l
matters                a     -         a          -       l
erasures               a     -         a          -       l
retention              l     -         l          -       l
keys                   a     a         -          -       l
webhooks               a     a         l          l       l
requests               l     l         l          l       l
people                 a     -         -          -       l
audit                  l     -         l          -       l
"""
DEPLOYMENT: Final = """
accounts               a     l         l          l       l
notices                a     l         a          l       l
state                  l     l         l          l       l
people                 a     -         -          -       l
audit                  l     -         l          -       l
"""
TABLE: Final = {
    (is_all, page, role): letter
    for is_all, table in ((False, ACCOUNT), (True, DEPLOYMENT))
    for page, *letters in map(str.split, table.strip().splitlines())
    for role, letter in zip(Role, letters, strict=True)
}
SEE_PERSONAL_DATA: Final = frozenset({Role.COMPLIANCE, Role.AUDITOR})
LOOKS: Final = frozenset(
    {"find", "export", "dossiers", "read", "certificate", "cover", "check", "preview"}
)
"""Forms that change nothing: a search, a preview, and evidence for a reason."""


def letter(is_all: bool, page: str, role: Role) -> str:
    """The letter in the table; for a new page, that of its scope."""
    return TABLE.get((is_all, page, role)) or ALLOWED[SCOPES[is_all, page], role]


def has(is_all: bool, page: str, role: Role) -> set[str]:
    """The acts of a page that are for the role: by the table, or by their scope, with an item."""
    acts, own = PAGES[is_all, page].new, letter(is_all, page, role)
    of_page = SCOPES[is_all, page]
    letters = {a.name: own if a.scope == of_page else ALLOWED[a.scope, role] for a in acts}
    return {name for name, one in letters.items() if one == "a"} - {"erase", "hold"}


def sees(is_all: bool, page: str, role: Role, *, staff: bool) -> bool:
    return letter(is_all, page, role) != "-" and (staff or not is_all)


def test_each_role_sees_the_pages_of_the_table_and_no_others(tmp_path: Path) -> None:
    """For staff and members; an invisible page is in no menu, and refused by its address."""

    async def work(console: Console) -> list[str]:
        account = await console.account("vendor")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        where = places(account)
        wrong = []
        for role in Role:
            for of in (None, account):
                person = await console.person(f"{role} {of}", role, of)
                visitor = Visitor(console, person.session)
                own = {key: sees(*key, role, staff=of is None) for key in where}
                menu = addresses(await visitor.open(where[False, "orders"]))
                for key, path in where.items():
                    page = await visitor.open(path)
                    said = f"{role} of {of or 'staff'} at {path}: {page.status}"
                    if (page.status == 200, path in menu) != (own[key], own[key]):
                        wrong.append(said)
                    may_act = own[key] and letter(*key, role) == "a"
                    acts = [f.action for f in page.forms if f.method == "post" and is_act(f.action)]
                    if acts and not may_act:
                        wrong.append(f"{said} may press {acts}")
                    wrong += await wrong_acts(visitor, path, key, role if own[key] else None)
                preview = f"{where[False, 'erasures']}/-/preview"
                previewed = await visitor.send(preview, subject=order["cbid"])
                may_erase = TABLE[(False, "erasures", role)] == "a"
                erases = any(one.action.endswith("/erase") for one in Page(previewed).forms)
                if erases is not may_erase:
                    wrong.append(f"{role} of {of} may press erase")
                shown = await visitor.open(f"{where[False, 'orders']}/{order['ack_id']}")
                pressed = {form.action.rpartition("/")[2] for form in shown.forms}
                if ("read" in pressed) is not (role in SEE_PERSONAL_DATA):
                    wrong.append(f"{role} of {of} may press {pressed}")
                led = {one.rpartition("/")[2] for one in addresses(shown)}
                offered = led & {"hold", "erase"}
                own_acts = {"hold": "holds", "erase": "erasures"}.items()
                if offered != {act for act, its in own_acts if TABLE[False, its, role] == "a"}:
                    wrong.append(f"{role} of {of} may {offered}")
        return wrong

    assert "\n".join(in_console(tmp_path, work)) == ""


async def wrong_acts(
    visitor: Visitor, path: str, key: tuple[bool, str], role: Role | None
) -> list[str]:
    """The acts of a page that are offered wrongly to a role, or to one that does not see it."""
    wrong = []
    for act in PAGES[key].new:
        asked = await visitor.open(f"{path}/-/{act.name}")
        is_offered = any(one.action.endswith(f"/{act.name}") for one in asked.forms)
        if is_offered is not (role is not None and act.name in has(*key, role)):
            wrong.append(f"{role} at {path} with {act.name}")
    return wrong


def addresses(page: Page) -> set[str]:
    return {have["href"] for _, have in page.elements if "href" in have}


def is_act(action: str) -> bool:
    return action.rpartition("/")[2] not in LOOKS | {"sign-out"}


def test_a_member_of_another_account_and_a_stranger_see_nothing(tmp_path: Path) -> None:
    """The member finds no such page, the stranger is redirected to the sign-in."""

    async def work(console: Console) -> tuple[set[int], set[tuple[int, str]]]:
        account, other = await console.account("vendor"), await console.account("other")
        member = Visitor(console, (await console.person("Ada", Role.OWNER, other)).session)
        stranger = Visitor(console, "csign_ps_nothing")
        paths = list(places(account).values())
        found = {(await member.open(path)).status for path in paths if account in path}
        led = [await stranger.raw("GET", path) for path in paths]
        led += [await stranger.send(f"{path}/-/find") for path in paths]
        return found, {(one.status_code, one.headers["location"].partition("?")[0]) for one in led}

    found, led = in_console(tmp_path, work)
    assert found == {404}
    assert led == {(303, "/console/sign-in")}
