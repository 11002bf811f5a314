"""How an account is shown to buyers: by its name, colour and logo, and always readable."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.checkout.brand import LOGO_BYTES_MAX
from countersign.checkout.screens import COLOR
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer
from tests.http.backstage import Operator, make_client
from tests.support.service import Deployment

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
PICTURES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(40),
    "image/webp": b"RIFF\x30\x00\x00\x00WEBPVP8 " + bytes(40),
}


def test_a_page_shows_name_colour_and_logo_of_the_account(
    shop: Shop, surf: Surf, operator: Operator, tmp_path: Path
) -> None:
    logo = tmp_path / "logo.png"
    logo.write_bytes(PNG)
    plain = surf().open()
    assert f"--brand: {COLOR};" in plain.response.text
    shop.brand(operator, name="Acme Parts", color="#FFCC00", logo=str(logo))
    surfer = surf()
    page = surfer.open()
    assert "--brand: #ffcc00; --on-brand: #000;" in page.response.text
    assert "Acme Parts" in page.text
    assert surfer.buyer.current()["vendor"] == "Acme Parts"
    [image] = [have for tag, have in page.elements if tag == "img"]
    assert image == {"src": f"/logos/{sha256(PNG).hexdigest()}", "alt": ""}
    with make_client(shop.server) as stranger:
        assert stranger.get("/logos/" + "0" * 64).status_code == 404
        served = stranger.get(image["src"])
    assert (served.content, served.headers["content-type"]) == (PNG, "image/png")
    assert served.headers["x-content-type-options"] == "nosniff"
    assert "immutable" in served.headers["cache-control"]
    assert served.headers["content-security-policy"].startswith("default-src 'none'")
    shop.brand(operator, name="", color="", logo="")
    bare = surf().open().response.text
    assert "Acme" not in bare
    assert "<img" not in bare
    assert re.search(f"--brand: {COLOR};", bare)


@pytest.mark.parametrize("kind", PICTURES)
def test_the_command_takes_pictures_by_what_they_are(
    deployment: Deployment, operator: Operator, tmp_path: Path, kind: str
) -> None:
    account = operator.account()
    logo = tmp_path / "logo.svg"
    logo.write_bytes(PICTURES[kind])
    shown = deployment.read("accounts", "brand", account, "--logo", str(logo))
    assert shown["logo"] == sha256(PICTURES[kind]).hexdigest()
    assert deployment.read("accounts", "brand", account) == shown
    assert deployment.read("accounts", "brand", account, "--logo", "")["logo"] is None


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--color", "red"),
        ("--color", "#fff"),
        ("--color", "#12345;"),
        ("--name", "a\u202eb"),
        ("--name", "a" * 101),
        ("--logo", b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"),
        ("--logo", b"GIF89a"),
        ("--logo", PNG + bytes(LOGO_BYTES_MAX)),
        ("--logo", b""),
        ("--logo", "/nowhere"),
    ],
)
def test_what_could_mislead_or_harm_is_refused(
    deployment: Deployment, operator: Operator, tmp_path: Path, option: str, value: str | bytes
) -> None:
    account = operator.account()
    if isinstance(value, bytes):
        file = tmp_path / "logo.png"
        file.write_bytes(value)
        value = str(file)
    refused = deployment.run("accounts", "brand", account, option, value, check=False)
    assert refused.returncode == 1, refused.stdout
    name, color, logo = deployment.read("accounts", "brand", account).values()
    assert (color, logo) == (None, None)
    assert name != value


def test_each_change_is_audited(deployment: Deployment, operator: Operator) -> None:
    account = operator.account()
    deployment.run("accounts", "brand", account, "--color", "#1B4965")
    deployment.run("accounts", "brand", account)
    entries = operator.rows("SELECT action FROM audit_log WHERE subject = :id", id=account)
    assert [row["action"] for row in entries].count("brand_changed") == 1
