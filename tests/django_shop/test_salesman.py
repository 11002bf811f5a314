"""django-salesman with the app: a second shop, not written here."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.django_shop.conftest import Shop
from tests.docs.markdown import ROOT

pytestmark = [pytest.mark.later, pytest.mark.long]
pytest.importorskip("salesman", reason="django-salesman 1.3 has no release for Django 6")


@pytest.mark.parametrize("fields", ["base", "related"])
def test_an_order_of_salesman_is_paid_once_it_is_cleared(running: Shop, fields: str) -> None:
    """Its own model reads itself in `__init__`, and has a `save` of its own; with both ways."""
    environment = os.environ | {
        "COUNTERSIGN_BASE_URL": running.server.url,
        "COUNTERSIGN_API_KEY": running.key,
    }
    command = [sys.executable, "-m", "tests.django_shop.salesman_shop.sell", fields]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        {"state": "cleared", "paid": 129, "evidence": [True, True]},
        {"state": "cancelled", "paid": 0, "evidence": [False, False]},
    ]
