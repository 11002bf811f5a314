"""The cookie values in a request."""

from __future__ import annotations

import pytest

from countersign.hosted.pages.cookies import values_of
from tests.support.in_process import call_of


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("n=a", ["a"]),
        (" n=a ; m=b", ["a"]),
        ("m=b;n=a=c;n=", ["a=c", ""]),
        ("n; n=a", ["", "a"]),
        ("n ;m", [""]),
        ("nn=a; mn=b; n =c; m=n=d", []),
        (";" * 9 + "n=a", ["a"]),
    ],
)
def test_every_cookie_of_a_name_is_found_and_no_other(line: str, values: list[str]) -> None:
    """A cookie without a value counts too: if there are several, none is trusted."""
    call = call_of("GET", "/", [(b"host", b"x"), (b"cookie", line.encode())])
    assert values_of(call, "n") == values
