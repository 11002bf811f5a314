"""The proxies of the guides, nginx and Caddy: what browsers and vendors may rely on."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.docs.markdown import ROOT

pytestmark = pytest.mark.one_engine

YEAR: Final = 31_536_000
HSTS: Final = re.compile(r'Strict-Transport-Security "max-age=([0-9]+); includeSubDomains"')


def nginx() -> str:
    """The file for nginx."""
    return (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")


def caddy() -> str:
    """The file for Caddy."""
    return (ROOT / "deploy" / "Caddyfile").read_text(encoding="utf-8")


def test_the_proxies_keep_browsers_on_https() -> None:
    """Pages are led to https, and remembered for a year; a call of the API by http is refused."""
    for file in (nginx(), caddy()):
        (age,) = HSTS.findall(file)
        assert int(age) >= YEAR
    plain, secure = nginx().split("listen 443 ssl http2;")
    assert re.search(r"location / \{\s+return 301 https://\$host\$request_uri;\s+\}", plain)
    assert re.search(r"location /v1/ \{\s+return 403;\s+\}", plain)
    assert "proxy_pass" not in plain
    assert "ssl_protocols TLSv1.2 TLSv1.3;" in secure
    assert "ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;" in secure
    assert "ssl_certificate /etc/letsencrypt/live/" in secure
    assert secure.count('" always;') == 1  # also on refusals; no location has headers of its own
    secure, plain = caddy().split("http://{$DOMAIN}")
    assert re.search(r"handle /v1/\* \{\s+respond 403\s+\}", plain)
    assert re.search(r"handle \{\s+redir https://\{host\}\{uri\} 301\s+\}", plain)
    assert "reverse_proxy" not in plain
    assert "tls" not in re.sub(r"#.*", "", secure)  # its own choice of versions, suites, authority


def test_the_proxies_logs_have_no_link_of_a_buyer() -> None:
    """Neither in access nor in error logs: a link carries a token, and so may a header."""
    links = re.search(r"location /c/ \{(.*?)\}", nginx(), re.DOTALL)
    assert links is not None
    assert "access_log off;" in links[1]
    assert "error_log /dev/null crit;" in links[1]
    # The format of a site would be that of its access log alone.
    options, sites = caddy().split("\n}\n", 1)
    fields = re.search(r"\{\n\tlog \{.*\sfields \{(.*?)\}", options, re.DOTALL)
    assert fields is not None
    assert fields[1].split() == ["request>uri", "delete", "request>headers", "delete"]
    assert not re.search(r"^\s*log\b", sites, re.MULTILINE)
