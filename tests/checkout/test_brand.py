"""How an account is shown to buyers: by its name, colour and logo, and always readable."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.core.checkout.brand import LOGO_BYTES_MAX
from countersign.core.parties import Particulars, describe
from countersign.hosted.toolkit.screens import COLOR, WORDS
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer
from tests.http.backstage import Operator, make_client
from tests.support.acts import done
from tests.support.service import Deployment

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
EN = WORDS["en"]
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
    assert f"--brand:{COLOR};" in plain.response.text
    shop.brand(operator, name="Acme Parts", color="#FFCC00", logo=str(logo))
    surfer = surf()
    page = surfer.open()
    assert "--brand:#ffcc00;--on-brand:#000;" in page.response.text
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
    assert re.search(f"--brand:{COLOR};", bare)


@pytest.mark.parametrize("kind", PICTURES)
def test_the_command_detects_image_types_by_content(
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
def test_misleading_or_harmful_brands_are_refused(
    deployment: Deployment, operator: Operator, tmp_path: Path, option: str, value: str | bytes
) -> None:
    account = operator.account()
    if isinstance(value, bytes):
        file = tmp_path / "logo.png"
        file.write_bytes(value)
        value = str(file)
    refused = deployment.run("accounts", "brand", account, option, value, check=False)
    assert refused.returncode == 1, refused.stdout
    shown = deployment.read("accounts", "brand", account)
    assert (shown["color"], shown["logo"]) == (None, None)
    assert shown["name"] != value


def test_each_change_is_audited(deployment: Deployment, operator: Operator) -> None:
    account = operator.account()
    deployment.run("accounts", "brand", account, "--color", "#1B4965")
    deployment.run("accounts", "brand", account)
    entries = operator.rows("SELECT action FROM audit_log WHERE subject = :id", id=account)
    assert [row["action"] for row in entries].count("brand_changed") == 1


WAYS = {
    "contact_url": "https://shop.example/contact?a=1&b=2",
    "privacy_url": "https://shop.example/privacy",
    "support_email": "help@shop.example",
}


def test_a_page_links_to_the_shop_and_names_its_operator(
    shop: Shop, surf: Surf, operator: Operator
) -> None:
    assert not [tag for tag, _ in surf().open().elements if tag == "footer"]
    shop.brand(operator, font="serif", **WAYS)
    operator.act(
        lambda opened: done(describe, opened.log, None, Particulars(legal_name="Keeper, Inc."))
    )
    page = surf().open()
    assert {WAYS["contact_url"], WAYS["privacy_url"]} <= set(page.links.values())
    assert "mailto:help@shop.example" in page.links.values()
    assert EN["operated_by"].replace("{operator}", "Keeper, Inc.") in page.text
    assert "--font:var(--serif);" in page.response.text
    shop.brand(operator, font="", **dict.fromkeys(WAYS, ""))
    assert "--font:var(--sans);" in surf().open().response.text


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--contact-url", "javascript:alert(1)"),
        ("--privacy-url", "shop.example"),
        ("--privacy-url", "https://a:b@shop.example/"),
        ("--support-email", "help"),
        ("--support-email", "a@b.example?cc=c@d.example"),
        ("--font", "comic"),
    ],
)
def test_a_return_address_at_another_site_is_refused(
    deployment: Deployment, operator: Operator, option: str, value: str
) -> None:
    account = operator.account()
    before = deployment.read("accounts", "brand", account)
    assert deployment.run("accounts", "brand", account, option, value, check=False).returncode == 1
    assert deployment.read("accounts", "brand", account) == before


def test_the_pages_of_an_account_can_be_previewed_without_a_session(
    deployment: Deployment, operator: Operator, tmp_path: Path
) -> None:
    account, logo, out = operator.account(), tmp_path / "logo.png", tmp_path / "pages" / "of acme"
    logo.write_bytes(PNG)
    deployment.run("accounts", "brand", account, "--name", "Acme & Co", "--logo", str(logo))
    names = deployment.read("accounts", "preview", account, "--out", str(out))["pages"]
    assert len(names) == 6
    for name in names:
        text = (out / name).read_text(encoding="utf-8")
        assert ("Acme &amp; Co" in text, 'src="logo"' in text) == (True, True)
    assert (out / "logo").read_bytes() == PNG
