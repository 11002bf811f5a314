"""QR codes: made once for each address, and never for an address that has none."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import segno

from countersign.base.snapshot import SingleFlight
from countersign.hosted.pages.room import ADDRESS_LENGTH_MAX, KEPT_MAX, _made, qr_code

ADDRESS = "https://provider.example/"


def of_length(length: int) -> str:
    return ADDRESS.ljust(length, "x")


def test_a_code_is_made_once_for_all_requests_and_by_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event loop serves others meanwhile, and a reload costs nothing."""
    made: list[bool] = []
    original = segno.make

    def counted(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as what it wraps
        made.append(threading.current_thread() is threading.main_thread())
        return original(*args, **options)

    monkeypatch.setattr(segno, "make", counted)
    _made.cache_clear()

    async def look() -> set[str]:
        looks = SingleFlight()
        at_once = await asyncio.gather(*(qr_code(looks, ADDRESS, "code") for _ in range(64)))
        return {str(code) for code in [*at_once, await qr_code(looks, ADDRESS, "code")]}

    [svg] = asyncio.run(look())
    assert svg.startswith('<svg role="img"')
    assert made == [False]


@pytest.mark.parametrize("length", [ADDRESS_LENGTH_MAX + 1, 2_953, 2_954, 4_096])
def test_a_long_address_has_no_code(length: int) -> None:
    """Cameras cannot read it, and beyond 2,953 bytes no code is possible."""
    assert asyncio.run(qr_code(SingleFlight(), of_length(length), "code")) is None


def test_the_longest_address_has_one() -> None:
    assert asyncio.run(qr_code(SingleFlight(), of_length(ADDRESS_LENGTH_MAX), "code"))


def test_only_some_codes_are_kept() -> None:
    """The most recently used codes."""
    assert _made.cache_info().maxsize == KEPT_MAX
