"""Bars over time, as the page draws them: SVG without script and without a style of its own.

Several series stand on each other. They differ in more than colour: the first is dark, the second
is hollow, the third is pale. Unmeasured intervals have a dashed edge up to the top instead of a
bar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from countersign_console.times import number, short_day

WIDTH: Final = 360
HEIGHT: Final = 150
_LEFT: Final = 46
_RIGHT: Final = WIDTH - 14
"""Half of the last time stands beyond the last bar."""
_TOP: Final = 14
_FLOOR: Final = 126
_STEPS: Final = (1, 2, 5)
_GAP: Final = 0.18
"""The part of a place that is free between two bars."""
_LEAST: Final = 1.5
"""The least height of a bar: a small number can be seen next to a large one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rectangle of a series (from 1), or (0) of missing measurements."""

    series: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A text in the drawing."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing with its text alternative."""

    name: str
    """Of its words, and in its identifiers."""
    series: Sequence[str]
    totals: Sequence[str]
    """Of each series over the whole time, in words."""
    says: str
    bars: Sequence[Bar]
    levels: Sequence[Mark]
    """Lines across, with their number."""
    times: Sequence[Mark]
    more: Sequence[Mark]
    """Above bars that would be higher."""
    has_gaps: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(bar.series for bar in self.bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The period of the figures: the last hours or the last days."""

    name: str
    figures: Sequence[Mapping[str, Any]]
    most: int
    """A figure of this size means "at least this many"."""
    locale: str
    words: Mapping[str, str]

    def label(self, figure: Mapping[str, Any]) -> str:
        """An hour or a day, of UTC."""
        at = datetime.fromisoformat(figure["begins_at"])
        return f"{at:%H}:00" if self.name == "hours" else short_day(at, self.locale)

    def shown(self, value: int | None) -> str:
        """A figure as a reader reads it."""
        if value is None:
            return self.words["not_measured"]
        text = number(value, self.locale)
        return self.words["or_more"].format(number=text) if value >= self.most else text

    def total(self, series: str) -> str:
        """The sum of measured values."""
        known = [one[series] for one in self.figures if one[series] is not None]
        if not known:
            return self.words["not_measured"]
        text = number(sum(known), self.locale)
        is_more = max(known) >= self.most
        return self.words["or_more"].format(number=text) if is_more else text


def draw(period: Period, name: str, series: Sequence[str]) -> Chart:
    """The chart of these series, one on the other."""
    sums = [_sum(one, series) for one in period.figures]
    top = _round_up(max((one for one in sums if one is not None), default=0))
    place = (_RIGHT - _LEFT) / max(1, len(sums))
    bars, more, times = list[Bar](), list[Mark](), list[Mark]()
    every = 6 if period.name == "hours" else 4
    for at, (figure, whole) in enumerate(zip(period.figures, sums, strict=True)):
        x = _LEFT + at * place
        across = {"x": _rounded(x + place * _GAP / 2), "width": _rounded(place * (1 - _GAP))}
        if (len(sums) - 1 - at) % every == 0:
            times.append(Mark(x=_rounded(x + place / 2), y=HEIGHT - 6, text=period.label(figure)))
        if whole is None:
            bars.append(Bar(series=0, y=_TOP, height=_FLOOR - _TOP, **across))
            continue
        y = float(_FLOOR)
        for number_, one in enumerate(series, start=1):
            if not figure[one]:
                continue
            height = max(_LEAST, figure[one] / top * (_FLOOR - _TOP))
            y -= height
            bars.append(Bar(series=number_, y=_rounded(y), height=_rounded(height), **across))
        if any(figure[one] >= period.most for one in series):
            more.append(Mark(x=_rounded(x + place / 2), y=_rounded(y - 2), text="+"))
    return Chart(
        name=name,
        series=series,
        totals=[period.total(one) for one in series],
        says=_says(period, sums),
        bars=bars,
        levels=[
            Mark(x=_LEFT - 6, y=_rounded(_FLOOR - part * (_FLOOR - _TOP)), text=text)
            for part, text in ((0.0, "0"), (1.0, number(top, period.locale)))
        ],
        times=times,
        more=more,
        has_gaps=None in sums,
    )


def _says(period: Period, sums: Sequence[int | None]) -> str:
    """A sentence with the time of the maximum."""
    known = [(whole, -at) for at, whole in enumerate(sums) if whole is not None]
    if not known:
        return period.words["chart_unknown"]
    most, at = max(known)
    if not most:
        return period.words["chart_nothing_known" if None in sums else "chart_nothing"]
    when = period.label(period.figures[-at])
    return period.words[f"chart_most_{period.name}"].format(number=period.shown(most), when=when)


def _sum(figure: Mapping[str, Any], series: Sequence[str]) -> int | None:
    values = [figure[one] for one in series]
    return None if None in values else sum(values)


def _round_up(most: int) -> int:
    """The next 1, 2 or 5 with zeros: the value of the highest line."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= most:
                return step * power
        power *= 10


def _rounded(value: float) -> float:
    return round(value, 1)
