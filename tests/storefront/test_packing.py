"""The two more notices of `make demo`: an invented one, and one for digital goods."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.backstage import Operator
from tests.storefront.shopper import ADDRESS, ROOT, Shopper, Storefront, running_shop
from tests.support.service import Deployment, Server

pytestmark = pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)
NOTICE = ROOT / "examples" / "storefront" / "invented_notice.toml"
DIGITAL = ROOT / "examples" / "notices" / "ca-bpc-17500-6-2025-01-01.toml"
MARK = "Invented for this demonstration: no law"
SAME_ZIP = "Ship it only to the ZIP code that was verified."


@pytest.fixture(scope="module")
def storefront(
    deployment: Deployment,
    server: Server,
    operator: Operator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Storefront]:
    """Run the shop as `make demo` does when it is started again."""
    for notice in (NOTICE, DIGITAL) * 2:
        deployment.run("notices", "publish", str(notice))
    key = operator.key(operator.account()).token
    with running_shop(server.url, key, tmp_path_factory.mktemp("shop"), more="yes") as shop:
        yield shop


def test_packers_read_what_to_do_with_each_parcel_and_no_address(shopper: Shopper) -> None:
    """Waiting orders are not shown; those of the real notice have no duty of the invented one."""
    shopper.order("apron", state="NV", zip="89101")
    notice = shopper.identify(shopper.order("parcel"))
    assert MARK in notice.text
    assert "Order 1002" not in shopper.open("/packing").text
    assert shopper.come_back(shopper.initial(notice)).heading == "Paid and released"
    shopper.come_back(shopper.initial(shopper.order("handguard")))
    page = shopper.open("/packing")
    _, apron, parcel, handguard = page.text.split("Order 100")
    label = f"Print on it, word for word: “{MARK}. An adult signs for this parcel.”"
    signature = "Hand it over only against the signature of an adult."
    assert "With the parcel:" in parcel
    assert all(words in parcel for words in (label, signature, SAME_ZIP))
    assert SAME_ZIP in handguard
    assert signature not in handguard
    assert "Nothing more." in apron
    assert not [part for part in ADDRESS.values() if len(part) > 2 and part in page.response.text]


def test_the_invented_notice_says_everywhere_that_it_is_no_law(shopper: Shopper) -> None:
    """On its product's page too, which does not mention legal requirements."""
    page = shopper.open("/products/parcel")
    assert MARK in page.text
    assert "Some states require" not in page.text
    assert "Some states require" in shopper.open("/products/mill").text
    notice: dict[str, Any] = tomllib.loads(NOTICE.read_text("utf-8"))
    texts = [notice[name] for name in ("title", "heading", "attestation_text", "jurisdiction")]
    texts += [notice["source_law"], notice["source_bill"], notice["applies_to"]["source"]]
    texts += [one["text"] for one in notice["bullets"] + notice["obligations"] if "text" in one]
    assert len(texts) == 10
    assert not [text for text in texts if MARK not in text]
    assert notice["id"] == "invented-for-this-demonstration-no-law"


def test_digital_goods_need_initials_and_no_identity_check(shopper: Shopper) -> None:
    """A second law is a second file. No parcel has a duty: no ZIP code was compared."""
    notice = shopper.order("plans")
    assert len(notice.form.texts) == 3
    assert shopper.come_back(shopper.initial(notice)).heading == "Paid and released"
    assert SAME_ZIP not in shopper.open("/packing").text.rpartition("Order 100")[2]
    assert shopper.order("plans", state="NV", zip="89101").heading == "Paid and released"


@pytest.mark.parametrize("file", [NOTICE, DIGITAL], ids=["invented", "digital goods"])
def test_no_one_can_review_their_texts(
    storefront: Storefront, deployment: Deployment, file: Path
) -> None:
    """So live keys never get them."""
    del storefront
    page = "https://no-law.invalid/page"
    content = tomllib.loads(file.read_text("utf-8"))
    what = (content["id"], "--version", content["version"])
    with pytest.raises(AssertionError, match="incomplete"):
        deployment.run("notices", "review", *what, "--by", "A person", "--against", page)
