"""The configuration is judged whole, at start: every mistake is reported at once."""

from pathlib import Path

import pytest

from countersign.base.config import SETTINGS
from tests.cli.conftest import Bench

MISTAKES = {
    "DATABASE_URL": "mysql://db/name",
    "KEY_ENCRYPTION_KEY": "vault:somewhere",
    "LOG_KEYS": "pocket",
    "LOG_ML_DSA": "perhaps",
    "TIMESTAMP_URLS": "tsa.example.com",
    "SEAL_WITHIN_SECONDS": "59",
    "HOST": "example.com",
    "PORT": "70000",
    "PUBLIC_URL": "countersign.example.com",
    "TRUSTED_PROXIES": "10.0.0.0/8,everyone",
    "CLIENT_IP_HEADER": "X Forwarded For",
    "RATE_LIMIT": "many",
    "TIME_ZONE": "Mars/Olympus",
    "MINIMUM_AGE": "17",
    "VERIFICATION_DAYS": "366",
    "EVIDENCE_DAYS": "-1",
    "FAILED_EVIDENCE_DAYS": "a month",
    "WEBHOOK_TIMEOUT_SECONDS": "0",
    "WEBHOOK_ALLOW_PRIVATE": "perhaps",
    "METRICS_PORT": "0",
    "METRICS_HOST": "metrics.example.com",
    "SECURITY_CONTACT": "security@example.com",
    "WORKERS": "65",
    "DRAIN_SECONDS": "301",
    "PROVIDER_CONCURRENCY": "0",
    "DATABASE_POOLER": "session",
    "PROVIDER_PROXY_URL": "proxy.example.com",
    "TRACES_URL": "127.0.0.1:4318",
    "CONSOLE": "perhaps",
    "NOTICE_REVIEWERS": "0",
    "CONSOLE_URL": "console.example.com",
    "OIDC_ISSUER": "http://id.example.com",
    "OIDC_CLIENT_ID": "é",
    "OIDC_CLIENT_SECRET": "é",
    "SMTP_URL": "mail.example.com",
    "SMTP_SENDER": "somebody",
    "SMTP_DAILY_LIMIT": "0",
}


@pytest.mark.parametrize("command", [("init",), ("serve",), ("dev",), ("accounts", "list")])
def test_all_mistakes_in_variables_are_reported_at_once(
    bench: Bench, command: tuple[str, ...]
) -> None:
    said = bench.but(**MISTAKES).refused(*command)
    assert "invalid_configuration" in said
    for name in MISTAKES:
        assert f"COUNTERSIGN_{name}: " in said
    assert not bench.data_dir.exists()


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found_on_its_own(bench: Bench, name: str) -> None:
    said = bench.but(**{name: MISTAKES[name]}).refused("init")
    assert f"COUNTERSIGN_{name}: expected " in said
    assert said.count("expected") == 1


def test_every_setting_that_can_be_wrong_is_tried_here() -> None:
    # Any text is a path, or the name of a token.
    paths = {
        "pkcs11_module",
        "pkcs11_token",
        "pkcs11_pin_file",
        "timestamp_roots_file",
        "data_dir",
        "secret_key_file",
        "log_head_dir",
        "witness_policy_file",
        "provider_ca_file",
    }
    assert {name.lower() for name in MISTAKES} == set(SETTINGS) - paths


def test_all_mistakes_in_a_file_are_reported_at_once(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "countersign.toml"
    file.write_text('port = 70000\nrate_limit = true\nprot = 1\nhost = "example.com"\n')
    said = bench.but(CONFIG=str(file), WORKERS="many").refused("init")
    for mistake in ("port: ", "rate_limit: ", "prot: unknown setting", "host: "):
        assert f"{file}: {mistake}" in said
    assert "COUNTERSIGN_WORKERS: " in said


@pytest.mark.parametrize("content", ["port = ", "\x00", None])
def test_a_file_that_cannot_be_read_is_reported(
    bench: Bench, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "countersign.toml"
    if content is not None:
        file.write_text(content)
    said = bench.but(CONFIG=str(file), PORT="0").refused("init")
    assert f"COUNTERSIGN_CONFIG: {file} cannot be read" in said
    assert "COUNTERSIGN_PORT: " in said


def test_settings_come_from_a_file_and_a_variable_wins(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "countersign.toml"
    lines = (f'data_dir = "{tmp_path / "from the file"}"', 'trusted_proxies = ["10.0.0.0/8"]')
    file.write_text("\n".join((*lines, "port = 9000")))
    # The data directory is given twice, and the variable wins.
    bench.but(CONFIG=str(file)).run("init")
    assert (bench.data_dir / "countersign.db").exists()
    bench.but(CONFIG=str(file), DATA_DIR="").run("init")
    assert (tmp_path / "from the file" / "countersign.db").exists()


def test_a_password_in_a_wrong_database_url_is_not_shown(bench: Bench) -> None:
    said = bench.but(DATABASE_URL="postgres//me:hunter2@db/name").refused("init")
    assert "COUNTERSIGN_DATABASE_URL" in said
    assert "hunter2" not in said
