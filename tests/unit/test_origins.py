"""The origin of an address is the browser's, or there is none."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.core.access.account import origin_of, parse_origin
from tests.support.every import every

SAME = {
    "https://shop.example": "https://shop.example",
    "HTTPS://Shop.EXAMPLE/Back?a=1": "https://shop.example",
    "https://shop.example:443/": "https://shop.example",
    "http://shop.example:80": "http://shop.example",
    "http://shop.example:443": "http://shop.example:443",
    "https://shop.example:08443/": "https://shop.example:8443",
    "https://shop.example?back=https://evil.example/": "https://shop.example",
    "https://a-b.c--d.example/": "https://a-b.c--d.example",
    "http://localhost:3000/back": "http://localhost:3000",
    "http://127.0.0.1:8080": "http://127.0.0.1:8080",
    "http://[::1]:8080/": "http://[::1]:8080",
    "https://shop.example/@evil.example": "https://shop.example",
    "https://shop.example/a:b@c": "https://shop.example",
}
NONE = [
    "",
    "null",
    "shop.example",
    "//shop.example/",
    "https:shop.example",
    "https:/shop.example",
    "https:///shop.example",
    "https://",
    "https://:443/",
    "ftp://shop.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "blob:https://shop.example/1",
    "https://user@shop.example/",
    "https://user:pass@shop.example/",
    "https://shop.example@evil.example/",
    "https://shop.example:443@evil.example/",
    "https://shop.example\\@evil.example/",
    "https://evil.example\\.shop.example/",
    "https:\\\\shop.example/",
    "https://shop.example:/",
    "https://shop.example:0/",
    "https://shop.example:65536/",
    "https://shop.example:-1/",
    "https://shop.example:\uff14\uff14\uff13/",
    "https://shop.example:443x/",
    "https://shop_example/",
    "https://-shop.example/",
    "https://shop-.example/",
    "https://shop..example/",
    "https://shop.example./",
    "https://.shop.example/",
    "https://*.example/",
    "https://shop%2eexample/",
    "https://shöp.example/",
    "https://shop。example/",
    "https://shop.example\t/",
    "https://shop\n.example/",
    " https://shop.example/",
    "https://shop.example/ ",
    "https://shop.example/\r\nLocation: x",
    "https://shop.example/<script>",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://1.2.3.4.5/",
    "https://256.1.1.1/",
    "https://shop.0x/",
    "http://[::0001]/",
    "http://[1::2::3]/",
    "http://[::ffff:1.2.3.4]/",
    "http://[::1/",
    "http://::1/",
    "http://[fe80::1%25eth0]/",
    f"https://{'a' * 300}.example/",
    "https://shop.example/" + "a" * 2048,
]
PARTS = ["https", "http", "://", ":", "/", "\\", "@", "#", "?", ".", "[", "]", "%", "0x", "-", "_"]
addresses = st.lists(
    st.sampled_from([*PARTS, "shop", "example", "A1", "443", "80", "127.0.0.1", "::1", "\t", "é"]),
    max_size=10,
).map("".join)


@every(("address", "origin"), SAME.items())
def test_an_address_has_the_origin_that_browsers_write(address: str, origin: str) -> None:
    assert origin_of(address) == origin
    assert parse_origin(origin) == origin
    assert parse_origin(origin + "/") == origin


@every("address", NONE)
def test_an_ambiguous_host_has_no_origin(address: str) -> None:
    assert origin_of(address) is None
    assert parse_origin(address) is None


@pytest.mark.parametrize("more", ["/x", "//", "?", "?x", "#", "#x", "/?x"])
def test_nothing_follows_an_origin(more: str) -> None:
    assert origin_of("https://shop.example" + more) == "https://shop.example"
    assert parse_origin("https://shop.example" + more) is None


@given(addresses)
def test_an_origin_is_the_origin_of_itself(address: str) -> None:
    origin = origin_of(address)
    if origin is not None:
        assert origin_of(origin) == parse_origin(origin) == origin


@pytest.mark.node
def test_a_browser_takes_the_same_for_the_origin() -> None:
    """An address without an origin here may have one there, but never the reverse."""
    drawn: list[str] = []

    @given(addresses)
    def draw(address: str) -> None:
        drawn.extend([address, f"https://{address}"])

    draw()
    asked = [*SAME, *NONE, *drawn]
    script = (
        "const read = (text) => { try { return new URL(text).origin } catch { return null } };"
        "const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(asked.map(read)))"
    )
    done = subprocess.run(
        ["node", "-e", script],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for address, theirs in zip(asked, json.loads(done.stdout), strict=True):
        assert origin_of(address) in {None, theirs}, address
