"""Settings: every one of them, from both sources, and all errors at once."""

from __future__ import annotations

from dataclasses import fields
from ipaddress import ip_network
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.config import (
    SETTINGS,
    Settings,
    load_settings,
    unknown_variables,
)
from countersign.base.errors import InvalidConfiguration
from countersign.base.setting_values import MailServer, Rate
from tests.support.every import every

# setting: (text, value, another text that is refused or None if any text is accepted)
CASES: dict[str, tuple[str, object, str | None]] = {
    "data_dir": ("/srv/x", Path("/srv/x"), None),
    "database_url": ("postgresql://db1,db2/c", "postgresql://db1,db2/c", None),
    "database_pooler": ("transaction", "transaction", "session"),
    "secret_key_file": ("/run/secret", Path("/run/secret"), None),
    "key_encryption_key": ("env:KEYS", "env:KEYS", "vault"),
    "log_keys": ("pkcs11", "pkcs11", "hsm"),
    "log_ml_dsa": ("true", True, "yes"),
    "pkcs11_module": ("/usr/lib/p11.so", Path("/usr/lib/p11.so"), None),
    "pkcs11_token": ("countersign", "countersign", None),
    "pkcs11_pin_file": ("/run/pin", Path("/run/pin"), None),
    "log_head_dir": ("/mnt/heads", Path("/mnt/heads"), "s3://key:secret@bucket/heads"),
    "witness_policy_file": ("/etc/w.policy", Path("/etc/w.policy"), None),
    "timestamp_urls": (
        "https://a.example/tsr, https://b.example",
        ("https://a.example/tsr", "https://b.example"),
        "a.example",
    ),
    "timestamp_roots_file": ("/etc/tsa.pem", Path("/etc/tsa.pem"), None),
    "seal_within_seconds": ("3600", 3600, "59"),
    "host": ("::1", "::1", "example.com"),
    "port": ("9443", 9443, "65536"),
    "public_url": ("https://c.example.com/x/", "https://c.example.com/x", "c.example.com"),
    "trusted_proxies": (
        "10.0.0.0/8, 2001:db8::/32,192.0.2.7",
        (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"), ip_network("192.0.2.7/32")),
        "10.0.0.1/8",
    ),
    "client_ip_header": ("CF-Connecting-IP", "cf-connecting-ip", "X Forwarded"),
    "rate_limit": ("600/10", Rate(600, 10), "600"),
    "time_zone": ("America/New_York", ZoneInfo("America/New_York"), "America/Nowhere"),
    "minimum_age": ("21", 21, "0"),
    "verification_days": ("90", 90, "0"),
    "evidence_days": ("0", 0, "-1"),
    "failed_evidence_days": ("7", 7, "x"),
    "provider_concurrency": ("16", 16, "0"),
    "provider_proxy_url": ("http://u:p@proxy:3128", "http://u:p@proxy:3128", "proxy:3128"),
    "provider_ca_file": ("/etc/ca.pem", Path("/etc/ca.pem"), None),
    "webhook_timeout_seconds": ("5", 5, "0"),
    "webhook_allow_private": ("true", True, "maybe"),
    "metrics_port": ("9090", 9090, "0"),
    "metrics_host": ("10.0.0.5", "10.0.0.5", "example.com"),
    "security_contact": (
        "mailto:security@example.com",
        "mailto:security@example.com",
        "security@example.com",
    ),
    "smtp_url": (
        "smtps://u:p%40ss@mail.example.com",
        MailServer("mail.example.com", 465, "tls", "u", "p@ss"),
        "smtp://u:p@mail.example.com:25",
    ),
    "smtp_sender": ("copies@shop.example", "copies@shop.example", "copies@shop.example X: y"),
    "smtp_daily_limit": ("5000", 5000, "0"),
    "workers": ("2", 2, "65"),
    "traces_url": ("http://127.0.0.1:4318", "http://127.0.0.1:4318", "127.0.0.1:4318"),
    "drain_seconds": ("5", 5, "301"),
    "console": ("true", True, "on"),
    "console_url": ("https://console.example/", "https://console.example", "console.example"),
    "notice_reviewers": ("1", 1, "3"),
    "oidc_issuer": ("https://id.example/", "https://id.example/", "http://id.example"),
    "oidc_client_id": ("a client", "a client", "é"),
    "oidc_client_secret": ("a:b%c", "a:b%c", "é"),
}
REFUSED = [name for name, (_, _, wrong) in CASES.items() if wrong is not None]


def variables(**settings: str) -> dict[str, str]:
    return {f"COUNTERSIGN_{name.upper()}": text for name, text in settings.items()}


def mistakes(environment: dict[str, str]) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        load_settings(environment)
    return caught.value.message.split("\n")


def test_every_setting_has_its_case_here() -> None:
    """A new setting has to be thought through."""
    assert set(CASES) == set(SETTINGS) == {field.name for field in fields(Settings)}


def test_the_defaults_need_no_settings() -> None:
    """`countersign serve` on a fresh machine: local, embedded, limited."""
    assert load_settings({}) == Settings(
        data_dir=Path("./var"),
        database_url=None,
        database_pooler="none",
        secret_key_file=Path("./var/secret.key"),
        key_encryption_key="file:var/key-encryption.key",
        log_keys="vault",
        log_ml_dsa=False,
        pkcs11_module=None,
        pkcs11_token=None,
        pkcs11_pin_file=None,
        log_head_dir=Path("./var/heads"),
        witness_policy_file=None,
        timestamp_urls=(),
        timestamp_roots_file=None,
        seal_within_seconds=86_400,
        host="127.0.0.1",
        port=8080,
        public_url="http://127.0.0.1:8080",
        trusted_proxies=(),
        client_ip_header="x-forwarded-for",
        rate_limit=Rate(6000, 60),
        time_zone=ZoneInfo("America/Los_Angeles"),
        minimum_age=18,
        verification_days=365,
        evidence_days=90,
        failed_evidence_days=30,
        provider_concurrency=64,
        provider_proxy_url=None,
        provider_ca_file=None,
        metrics_port=None,
        metrics_host="127.0.0.1",
        security_contact=None,
        webhook_timeout_seconds=15,
        webhook_allow_private=False,
        smtp_url=None,
        smtp_sender=None,
        smtp_daily_limit=1000,
        workers=1,
        traces_url=None,
        drain_seconds=0,
        console=False,
        console_url=None,
        notice_reviewers=2,
        oidc_issuer=None,
        oidc_client_id=None,
        oidc_client_secret=None,
    )


@every("name", CASES)
def test_every_setting_is_read_from_its_variable(name: str) -> None:
    """COUNTERSIGN_ and the name in capitals."""
    text, value, _ = CASES[name]
    assert getattr(load_settings(variables(**{name: text})), name) == value


@pytest.mark.parametrize("name", CASES)
def test_every_setting_is_read_from_the_file(name: str, tmp_path: Path) -> None:
    """The same names in small letters, the same texts."""
    text, value, _ = CASES[name]
    file = tmp_path / "settings.toml"
    file.write_text(f"{name} = '{text}'\n", encoding="utf-8")
    assert getattr(load_settings({"COUNTERSIGN_CONFIG": str(file)}), name) == value


@pytest.mark.parametrize("name", CASES)
def test_a_variable_beats_the_file(name: str, tmp_path: Path) -> None:
    """One value can be changed for one start, even if the file has an error in it."""
    text, value, wrong = CASES[name]
    file = tmp_path / "settings.toml"
    file.write_text(f"{name} = '{wrong or '/elsewhere'}'\n", encoding="utf-8")
    environment = variables(**{name: text}) | {"COUNTERSIGN_CONFIG": str(file)}
    assert getattr(load_settings(environment), name) == value


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    """Each with its place: variables, the file, and unknown settings."""
    file = tmp_path / "settings.toml"
    file.write_text("port = 0\nprot = 8080\nhost = 1.5\nworkers = true\n", encoding="utf-8")
    given_ = {name: str(CASES[name][2]) for name in REFUSED if name != "port"}
    found = mistakes(variables(**given_) | {"COUNTERSIGN_CONFIG": str(file)})
    origins = [line.partition(": expected")[0] for line in found]
    assert sorted(origins) == sorted(
        [
            *variables(**given_),
            f"{file}: port",
            f"{file}: prot: unknown setting",
            f"{file}: host",
            f"{file}: workers",
        ]
    )


@every("name", REFUSED)
def test_an_error_gives_the_expected_value_and_its_place(name: str) -> None:
    """The name of the variable, and an example or a rule."""
    (line,) = mistakes(variables(**{name: str(CASES[name][2])}))
    assert line.startswith(f"COUNTERSIGN_{name.upper()}: expected ")


@every("name", SETTINGS)
def test_an_empty_variable_counts_as_not_set(name: str) -> None:
    """Compose files and unit files leave settings out in that way."""
    assert load_settings(variables(**{name: ""})) == load_settings({})


@every(
    ("name", "text"),
    [
        ("port", "-1"), ("port", " 80"), ("port", "\uff18"), ("port", "8080.0"),
        ("host", "127.1"), ("host", "127.0.0.1:80"), ("host", "[::1]"),
        ("public_url", "ftp://x"), ("public_url", "https://"), ("public_url", "https://x/?a=b"),
        ("public_url", "https://[x"), ("public_url", "javascript:alert(1)"),
        ("trusted_proxies", "example.com"), ("trusted_proxies", "10.0.0.0/33"),
        ("client_ip_header", "X-Real-IP:"), ("client_ip_header", "a\n"),
        ("rate_limit", "0/60"), ("rate_limit", "60/0"), ("rate_limit", "60/60\n"),
        ("rate_limit", "OFF"), ("rate_limit", "1e3/60"), ("rate_limit", "-1/60"),
        ("time_zone", "../../etc/passwd"), ("time_zone", "America"),
        ("security_contact", "https://x\ny"), ("security_contact", "http://x"),
        ("workers", "0"), ("metrics_port", "off"),
    ],
)  # fmt: skip
def test_settings_that_would_fail_later_are_refused_at_start(name: str, text: str) -> None:
    """A server with a wrong setting is worse than one that does not start."""
    assert len(mistakes(variables(**{name: text}))) == 1


@given(st.sampled_from(sorted(CASES)), st.text(max_size=30))
def test_any_text_is_a_setting_or_an_invalid_configuration(name: str, text: str) -> None:
    """There is no third outcome."""
    try:
        found = load_settings(variables(**{name: text}))
    except InvalidConfiguration:
        return
    assert isinstance(found, Settings)


@pytest.mark.parametrize(
    "content",
    [b"port = ", b"\xff", b"port = 1\nport = 2", b"a = " + b"[" * 5000, b"port = 1" + b"0" * 5000],
)
def test_a_file_that_cannot_be_read_is_reported_with_all_else(
    content: bytes, tmp_path: Path
) -> None:
    """It does not hide the mistakes in the variables."""
    file = tmp_path / "settings.toml"
    file.write_bytes(content)
    found = mistakes(variables(port="0") | {"COUNTERSIGN_CONFIG": str(file)})
    assert len(found) == 2
    assert found[0].startswith(f"COUNTERSIGN_CONFIG: {file} cannot be read: ")


@pytest.mark.parametrize("path", ["missing.toml", "."])
def test_a_missing_file_is_an_error(path: str, tmp_path: Path) -> None:
    """It does not count as an empty one."""
    (line,) = mistakes({"COUNTERSIGN_CONFIG": str(tmp_path / path)})
    assert "cannot be read" in line


def test_the_file_may_use_numbers_and_lists(tmp_path: Path) -> None:
    """TOML has them, so people write them."""
    file = tmp_path / "settings.toml"
    file.write_text(
        'port = 9000\ntrusted_proxies = ["10.0.0.0/8", "192.0.2.7"]\n', encoding="utf-8"
    )
    found = load_settings({"COUNTERSIGN_CONFIG": str(file)})
    assert found.port == 9000
    assert [str(network) for network in found.trusted_proxies] == ["10.0.0.0/8", "192.0.2.7/32"]


def test_derived_settings_follow_the_set_ones() -> None:
    """The secret stands in the data directory; links lead to host and port, IPv6 in brackets."""
    found = load_settings(variables(data_dir="/srv/c", host="::1", port="80"))
    assert found.secret_key_file == Path("/srv/c/secret.key")
    assert found.public_url == "http://[::1]:80"


def test_the_rate_limit_can_be_switched_off() -> None:
    """Where something in front of it does the limiting."""
    assert load_settings(variables(rate_limit="off")).rate_limit is None


def test_the_database_url_is_never_printed() -> None:
    """It may hold a password."""
    assert "hunter2" not in repr(
        load_settings(variables(database_url="postgresql://u:hunter2@h/d"))
    )


def test_an_unknown_variable_is_named_and_does_not_stop_a_start() -> None:
    """A shell may hold variables for clients; a typing error should be seen all the same."""
    environment = {"COUNTERSIGN_PROT": "1", "COUNTERSIGN_API_KEY": "x", "PORT": "0"}
    assert load_settings(environment).port == 8080
    environment |= variables(port="1") | {"COUNTERSIGN_CONFIG": "x"}
    assert unknown_variables(environment) == ["COUNTERSIGN_API_KEY", "COUNTERSIGN_PROT"]
