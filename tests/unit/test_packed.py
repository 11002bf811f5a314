"""A page's style and script travel compressed, and nothing else of it does."""

from __future__ import annotations

import gzip
import zlib
from secrets import token_urlsafe

import pytest

from countersign.core.gate.route import Call, Reply
from countersign.hosted.toolkit.packed import packed

STYLE, SCRIPT = "p { margin: 0 } " * 200, "const a = 1;\n" * 200


def page(own: str) -> bytes:
    text = f"<style>{STYLE}</style><p>{own}</p><script>{SCRIPT}</script><p>{own}</p>"
    return text.encode()


def sent(body: bytes, accepted: str = "gzip, deflate, br, zstd") -> bytes:
    headers = {b"accept-encoding": accepted.encode()}
    call = Call(method="GET", path="/", query_string=b"", headers=headers, raw_headers=(), peer="")
    reply = packed(Reply(body), call)
    assert (reply.body is body) is ((b"content-encoding", b"gzip") not in reply.headers)
    return reply.body


def test_a_browser_reads_the_page_as_it_was() -> None:
    for own in ("", "é", token_urlsafe(100_000)):
        assert gzip.decompress(sent(page(own))) == page(own)
    # As browsers do it: in pieces, as they arrive.
    reader, got = zlib.decompressobj(wbits=31), b""
    for byte in sent(page("secret")):
        got += reader.decompress(bytes((byte,)))
    assert (got, reader.eof, reader.unused_data) == (page("secret"), True, b"")


def test_style_and_script_take_a_fraction_of_their_bytes() -> None:
    assert len(sent(page(""))) < len(page("")) / 20


def test_the_length_tells_nothing_about_what_is_in_the_page() -> None:
    """A guess that a stranger has put beside a secret is no shorter where it is right (BREACH)."""
    secret = token_urlsafe(30)
    right, wrong = f"{secret} csrf={secret}", f"{secret} csrf={token_urlsafe(30)}"
    assert len(sent(page(right))) == len(sent(page(wrong)))
    for own in (right, wrong, f"{STYLE[:500]}{secret}"):
        assert sent(page(own)).count(own.encode()) == 2


@pytest.mark.parametrize(
    "accepted", ["", "br", "gzip;q=0", "gzip; Q=0.0 , br", "xgzip", "gzipx", "gzip-x"]
)
def test_who_takes_no_gzip_gets_none(accepted: str) -> None:
    assert sent(page("x"), accepted) == page("x")


@pytest.mark.parametrize("accepted", ["gzip", "br, GZIP;q=0.5", "gzip;q=1.0, *;q=0"])
def test_who_takes_gzip_gets_it(accepted: str) -> None:
    assert gzip.decompress(sent(page("x"), accepted)) == page("x")


def test_what_is_no_page_is_sent_as_it_is() -> None:
    for body in (b"", b"%PDF-1.7"):
        assert sent(body) is body
