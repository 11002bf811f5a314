"""Plots of a run, as SVG: the processor time of a request by contender, and as more is stored."""

from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Final

from bench.report import ENGINE_TITLES, TITLES
from bench.results import CONTENDERS, CPU, Case, cases_by_size
from bench.servers import COUNTERSIGN

WIDTH: Final = 720
_LEFT, _BAR, _GAP = 230, 16, 14
_COLORS: Final = {
    "floor": "#cbd2d9",
    "ceiling": "#9aa5b1",
    "usual": "#c98b3c",
    "countersign": "#2f6f8f",
}
_STYLE: Final = "font: 13px sans-serif"

_Group = tuple[str, Mapping[str, float]]


def draw(cases: Sequence[Case], folder: Path) -> None:
    """Write the plots that this run has figures for."""
    at_32 = [case for case in cases if case.connections == 32]
    groups = [
        (f"{ENGINE_TITLES[case.engine]}, {case.operation}", _costs(case))
        for case in at_32
        if not case.stored
    ]
    _write(folder / "performance-cpu.svg", groups)
    sizes = [
        (f"{ENGINE_TITLES[case.engine]}, {case.stored:,} stored", _costs(case, COUNTERSIGN))
        for one in cases_by_size(at_32)
        for case in one
        if case.stored
    ]
    _write(folder / "performance-growth.svg", sizes)


def _costs(case: Case, *only: str) -> dict[str, float]:
    found = {name: case.median(name, CPU) for name in only or CONTENDERS}
    return {name: cost for name, cost in found.items() if cost}


def _write(path: Path, groups: Sequence[_Group]) -> None:
    """Bars on a logarithmic scale from 10 µs."""
    if not groups:
        return
    parts, y = [], 30
    most = max(value for _, bars in groups for value in bars.values())
    scale = (WIDTH - _LEFT - 130) / max(log10(most / 10), 1)
    for title, bars in groups:
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 13}" text-anchor="end">{title}</text>')
        for name, value in bars.items():
            long = max(2.0, scale * log10(max(value, 10) / 10))
            color = _COLORS.get(name, "#555")
            size = f'width="{long:.1f}" height="{_BAR}" fill="{color}"'
            label = f"{value:,.0f} · {TITLES[name]}"
            parts.append(
                f'<rect x="{_LEFT}" y="{y}" {size}/>'
                f'<text x="{_LEFT + long + 6:.1f}" y="{y + 13}">{label}</text>'
            )
            y += _BAR + 3
        y += _GAP
    head = "Processor time of a request at 32 connections, in µs; each step of the scale is tenfold"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" '
        f'style="{_STYLE}; background: #fff">\n<text x="10" y="16">{head}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n",
        "utf-8",
    )
