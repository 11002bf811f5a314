"""Running the `bash` blocks of a page, and comparing their output with the page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.docs.markdown import Block
from tests.support.stand_in import stand_in

_SEPARATOR = "\x1e"
VARYING = (
    re.compile(r"ack_[0-9a-hjkmnp-tv-z]{26}"),
    re.compile(r"cbid_(?:test_)?[0-9a-hjkmnp-tv-z]{26}"),
    re.compile(r"clr_[0-9a-hjkmnp-tv-z]{26}"),
    re.compile(r"evt_[0-9a-hjkmnp-tv-z]{26}"),
    re.compile(r"chk_[0-9a-hjkmnp-tv-z]{26}"),
    re.compile(r"https?://[^/]+/c/cst_test_.+"),
    re.compile(r"eyJ.+"),
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    re.compile(r"127\.0\.0\.1:\d+/v1/log/test/1"),
    re.compile(r"127\.0\.0\.1:\d+/receipt/v1\nrecord .*", re.DOTALL),
)
"""Parts that differ in each run; all else must be as on the page."""


def run_blocks(
    blocks: Iterable[Block],
    *,
    directory: Path,
    environment: Mapping[str, str],
    placeholders: Mapping[str, str],
    seconds: float = 110,
) -> dict[Block, str]:
    """Run the blocks one after the other in one shell; returns their output.

    The shell stands in a directory with a link `.venv` to the environment of the tests, as in a
    checkout. `placeholders` maps values of the page to values here.
    """
    for program in ("bash", "curl"):
        assert shutil.which(program), f"{program} is missing: the documented commands need it"
    link = directory / ".venv"
    if not link.exists():
        link.symlink_to(sys.prefix)
    wanted = list(blocks)
    parts = ["set -euo pipefail"]
    for block in wanted:
        text = block.text
        for shown, real in placeholders.items():
            text = text.replace(shown, real)
        parts += [f"printf '{_SEPARATOR}'", text]
    with stand_in() as first:
        path = f"{first}:{link / 'bin'}:{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", "\n".join(parts)],
            cwd=directory,
            env={**environment, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
    printed = done.stdout.split(_SEPARATOR)[1:]
    assert done.returncode == 0, f"{wanted[len(printed) - 1]} failed: {printed[-1]}"
    return dict(zip(wanted, printed, strict=True))


def answers(printed: str) -> list[Any]:
    """The JSON objects that were printed, each on a line of its own."""
    return [json.loads(line) for line in printed.splitlines() if line[:1] + line[-1:] == "{}"]


def check_answers(page_blocks: Sequence[Block], printed: Mapping[Block, str]) -> int:
    """Compare each `json` block with the last answer before it; gives how many were compared.

    An answer that is a failure must be shown on the page.
    """
    compared = 0
    for block, following in zip(page_blocks, [*page_blocks[1:], None], strict=True):
        if block not in printed:
            continue
        found = answers(printed[block])
        if following is not None and following.language == "json":
            assert found, f"{block} printed no answer: {printed[block]}"
            compare(json.loads(following.text), found[-1], f"{following} $")
            compared += 1
        else:
            assert not any("error" in answer for answer in found), f"{block}: {found}"
    return compared


def compare(shown: object, real: object, place: str) -> None:
    """Fail unless both are the same, except for parts that differ in each run."""
    if isinstance(shown, dict) and isinstance(real, dict):
        # A guide may leave out members: the reference has all of them.
        assert list(shown) == [key for key in real if key in shown], f"{place}: {list(real)}"
        for key in shown:
            compare(shown[key], real[key], f"{place}.{key}")
    elif isinstance(shown, list) and isinstance(real, list):
        assert len(shown) == len(real), f"{place}: another number of elements: {real}"
        for number, (one, other) in enumerate(zip(shown, real, strict=True)):
            compare(one, other, f"{place}[{number}]")
    elif isinstance(shown, str) and isinstance(real, str):
        varying = any(form.fullmatch(shown) and form.fullmatch(real) for form in VARYING)
        assert varying or shown == real, f"{place}: the page shows {shown!r}, it is {real!r}"
    else:
        assert type(shown) is type(real), f"{place}: the page shows {shown!r}, it is {real!r}"
        # The number of the log entry depends on earlier ones.
        assert shown == real or place.endswith("$.evidence.index"), (
            f"{place}: the page shows {shown!r}, it is {real!r}"
        )
