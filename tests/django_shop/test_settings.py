"""Settings, template tags and migrations of the app: without a service."""

from __future__ import annotations

from pathlib import Path
from traceback import TracebackException
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections
from django.template import Context, Template
from django.test.utils import override_settings

from countersign_django.checks import key_counts, settings_work
from countersign_django.conf import client, configuration
from tests.django_shop.models import Order
from tests.django_shop.project import SECRET, use_database

RIGHT = {
    "BASE_URL": "https://countersign.example.com",
    "API_KEY": "csign_sk_live_x",
    "WEBHOOK_SECRET": SECRET,
}


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({}, []),
        ({"KEY": "x"}, ["countersign.E001"]),
        ({"API_KEY": ""}, ["countersign.W001"]),
        ({"API_KEY": "sk_live"}, ["countersign.E002"]),
        ({"BASE_URL": ""}, ["countersign.W001"]),
        ({"BASE_URL": "countersign.example.com"}, ["countersign.E003"]),
        ({"BASE_URL": "http://countersign.example.com"}, ["countersign.E004"]),
        ({"BASE_URL": "http://127.0.0.1:8080"}, []),
        ({"API_KEY": "csign_sk_live_x\n"}, ["countersign.E002"]),
        ({"API_KEY": "csign_sk_test_..."}, ["countersign.E002"]),
        ({"BASE_URL": "https://[countersign"}, ["countersign.E003"]),
        ({"BASE_URL": "https://countersign.example.com/?a"}, ["countersign.E003"]),
        ({"WEBHOOK_SECRET": "secret"}, ["countersign.E005"]),
        ({"WEBHOOK_SECRET": "whsec_"}, ["countersign.E005"]),
        ({"WEBHOOK_SECRET": "whsec_..."}, ["countersign.E005"]),
        ({"TIMEOUT_SECONDS": "5"}, ["countersign.E006"]),
        ({"TIMEOUT_SECONDS": 0}, ["countersign.E006"]),
        ({"WEBHOOK_SECRET": ""}, ["countersign.W001"]),
    ],
)
def test_wrong_settings_are_found_by_a_check(wrong: dict[str, Any], found: list[str]) -> None:
    with override_settings(COUNTERSIGN=RIGHT | wrong):
        assert [one.id for one in settings_work()] == found


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"API_KEY": "csign_sk_test_..."}, "in full"),
        ({"API_KEY": "csign_sk_live_x\n"}, "new line"),
        ({"API_KEY": SECRET}, "is a webhook secret"),
        ({"API_KEY": "x"}, "begins with csign_sk_"),
        ({"BASE_URL": "countersign.example.com"}, "Is it https://countersign.example.com?"),
        ({"BASE_URL": "https://countersign.example.com/?a"}, "follow a ?"),
        ({"WEBHOOK_SECRET": "whsec_..."}, "in full"),
        ({"WEBHOOK_SECRET": RIGHT["API_KEY"]}, "is an API key"),
        ({"WEBHOOK_SECRET": "x"}, "begins with whsec_"),
    ],
)
def test_a_check_names_what_is_wrong_with_the_value(wrong: dict[str, str], hint: str) -> None:
    with override_settings(COUNTERSIGN=RIGHT | wrong):
        (found,) = settings_work()
    assert hint in str(found.hint)
    assert " none." not in found.msg


def test_a_test_key_is_found_before_a_deployment() -> None:
    with override_settings(COUNTERSIGN=RIGHT):
        assert key_counts() == []
    with override_settings(COUNTERSIGN=RIGHT | {"API_KEY": "csign_sk_test_x"}):
        assert [one.id for one in key_counts()] == ["countersign.W002"]
    with override_settings(COUNTERSIGN={"KEY": "x"}):
        assert key_counts() == []


def test_without_settings_nothing_is_sent() -> None:
    with override_settings(COUNTERSIGN={}), pytest.raises(ImproperlyConfigured, match="No key"):
        client()
    with override_settings(COUNTERSIGN={"URL": ""}), pytest.raises(ImproperlyConfigured):
        configuration()


def test_a_report_of_a_wrong_setting_shows_no_secret() -> None:
    """An error page shows the variables of functions."""
    wrong = RIGHT | {"BASE_URL": "nowhere"}
    with override_settings(COUNTERSIGN=wrong), pytest.raises(ImproperlyConfigured) as caught:
        client()
    shown = TracebackException.from_exception(caught.value, capture_locals=True)
    _, _, report = "".join(shown.format()).partition("in client\n")
    assert "nowhere" in report
    assert RIGHT["API_KEY"] not in report
    assert SECRET not in report


def test_the_component_is_in_a_template() -> None:
    order = Order(client_token="cst_test_x")
    template = Template("{% load countersign %}{% countersign_script %}{% countersign_notice o %}")
    url = f"{RIGHT['BASE_URL']}/component/v1/countersign-notice.js"
    with override_settings(COUNTERSIGN=RIGHT):
        text = template.render(Context({"o": order}))
    assert f'<script type="module" src="{url}"></script>' in text
    assert 'required client-token="cst_test_x"' in text
    with override_settings(COUNTERSIGN=RIGHT | {"COMPONENT_INTEGRITY": "sha384-x"}):
        assert 'integrity="sha384-x" crossorigin' in template.render(Context({"o": order}))


def test_the_migrations_match_the_models(tmp_path: Path) -> None:
    use_database(str(tmp_path / "shop.sqlite"))
    call_command("makemigrations", "countersign_django", check=True, dry_run=True, verbosity=0)
    connections["default"].close()
