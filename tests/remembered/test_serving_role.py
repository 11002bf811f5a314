"""`/buyer` on a server whose database role may not erase."""

from __future__ import annotations

import pytest

from countersign.base.values import Mode
from countersign.hosted.toolkit.screens import WORDS
from tests.docs.test_serving_role import (
    as_app,
    cluster,  # noqa: F401 - a fixture
    grant,
    owner,  # noqa: F401 - a fixture
)
from tests.http.backstage import Operator
from tests.http.calls import verify
from tests.remembered.conftest import Person, form_of, remembered
from tests.support import postgres
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.postgres, pytest.mark.long]
EN = WORDS["en"]


def test_a_request_waits_for_the_owner_and_the_page_says_so(
    cluster: postgres.PostgresServer,  # noqa: F811 - a fixture
    owner: Deployment,  # noqa: F811 - a fixture
) -> None:
    """Passkeys and cookies are deleted at once, and the rest with the owner's next run."""
    grant(owner, cluster)
    with (
        Operator(owner) as operator,
        running_server(as_app(owner, cluster)) as server,
        operator.vendor(server) as vendor,
    ):
        cbid = str(verify(vendor.test, shipping_zip="94110").json()["cbid"])
        person = Person(server)
        remembered(operator, person, cbid, Mode.TEST)
        page = person.send(form_of(person.open("/buyer"), "erase", "act"), sure="yes")
        person.client.close()
        assert EN["remembered_says_requested"] in page.text
        assert operator.rows("SELECT 1 FROM remembered") == []
        assert len(operator.rows("SELECT 1 FROM verifications")) == 1
        done = owner.read("retention", "run", "--yes")
        assert done["requested"] == [{"cbid": cbid, "outcome": "erased"}]
        assert operator.rows("SELECT 1 FROM verifications") == []
