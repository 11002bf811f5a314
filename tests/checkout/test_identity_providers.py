"""Every provider with every outcome, as a buyer without JavaScript meets it on the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx2
import pytest

from countersign.checkout.words import WORDS
from countersign_simulators.hosted import Outcome
from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import Shop
from tests.checkout.provider import ZIP, Counter, begin, check, come_back, counter, send
from tests.http.backstage import Operator
from tests.support.service import Server

EN = WORDS["en"]


@pytest.fixture(scope="module", params=sorted(SIMULATORS))
def desk(request: pytest.FixtureRequest, server: Server, operator: Operator) -> Iterator[Counter]:
    """Give a shop for each provider."""
    with operator.vendor(server) as vendor, ExitStack() as opened:
        with counter(Shop(vendor, server, opened), operator, request.param) as made:
            yield made


@pytest.mark.parametrize("outcome", [*Outcome])
def test_x(desk: Counter, outcome: str) -> None:
    surfer = desk.buyer()
    url = begin(surfer)
    r = httpx2.post(url, data={"zip": ZIP, "outcome": outcome})
    loc = r.headers.get("location")
    if loc:
        page = come_back(surfer, loc)
    else:
        page = send(surfer, surfer.open(surfer.root), "check")
    al = page.text.split("did not succeed:")[-1][:150] if "did not succeed" in page.text else page.text[page.text.find(page.heading):][:230]
    print("@@", desk.provider.name, outcome, bool(loc), page.status, page.heading, "|", al)
