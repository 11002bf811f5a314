"""Time that is not the operator's is never absent without a word, and one word has it asked for."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest

from countersign.core.log import anchor as anchoring
from countersign.core.log import authorities
from countersign.core.log.authorities import Authority, known_authorities
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.timestamp_signer import timestamp_check
from tests.sealing.acts import policy_of
from tests.sealing.authority import stamp
from tests.sealing.live import acknowledge_live, open_for_live
from tests.sealing.test_renewing import Place, anchors
from tests.sealing.witness import NAME, Witness, served, wait_for
from tests.support.service import Deployment, free_port, running_server

WARNING = "warning: there are live keys, but no witness and no time-stamp authority"


def anchored(deployment: Deployment) -> dict[str, tuple[int | None, str | None]]:
    """The live log's witnesses and authorities in `log status`, by name."""
    (live,) = [one for one in deployment.read("log", "status") if one["mode"] == "live"]
    return {one["name"]: (one["size"], one["at"]) for one in live["anchors"]}


@pytest.mark.openssl
def test_the_status_names_the_last_success_of_each_witness_and_authority(
    embedded: Deployment, tmp_path: Path, authority: Path
) -> None:
    """And the entries that it covers; one without a success has `never`."""
    key, live = open_for_live(embedded, tmp_path)
    away = Witness(lambda: list(policy_of(embedded, "live").logs), "witness.example/away")
    away.away = True
    witness = Witness(lambda: list(policy_of(embedded, "live").logs))
    file, ports = tmp_path / "witnesses.policy", str(free_port())

    def answer(query: bytes) -> tuple[int, str, bytes]:
        return 200, "application/timestamp-reply", stamp(authority, query)

    with served(answer) as stamping, served(witness) as one, served(away) as two:
        file.write_text(
            f"witness W {witness.verifier.vkey} {one}\n"
            f"witness A {away.verifier.vkey} {two}\nquorum none\n"
        )
        settings = {"TIMESTAMP_URLS": stamping, "WITNESS_POLICY_FILE": str(file)}
        asking = Deployment(data_dir=live.data_dir, settings=dict(live.settings) | settings)
        assert list(anchored(asking).values()) == [(None, None)] * 3
        with running_server(asking, METRICS_PORT=ports) as server, server.client(key) as vendor:
            assert f"time-stamps of {stamping}: never\n" in server.log.read_text()
            acknowledge_live(vendor)
            wait_for(lambda: anchored(asking)[stamping][0] is not None)
            wait_for(
                lambda: any(size for name, (size, _) in anchored(asking).items() if NAME in name)
            )

            def counted() -> dict[str, float]:
                page = httpx2.get(f"http://127.0.0.1:{ports}/metrics", verify=False).text
                rows = re.findall(
                    r'^countersign_promise_age_seconds\{of="(\S+)",promise="time_stamped"\} (\S+)$',
                    page,
                    re.MULTILINE,
                )
                return {name.partition("+")[0]: float(age) for name, age in rows}

            wait_for(lambda: stamping in counted())
            assert counted().keys() >= {stamping, "witness.example/away"}
    said = asking.run("log", "status").stdout.replace("\n", " ")
    assert re.search(rf"witness {re.escape(NAME)}\S*: \d+ entries at 20\d\d-", said)
    assert re.search(r"witness witness.example/away\S*: never", said)
    assert re.search(rf"time-stamps of {re.escape(stamping)}: \d+ entries at 20", said)


def test_a_server_with_live_keys_and_no_third_party_says_what_is_missing(
    embedded: Deployment, tmp_path: Path
) -> None:
    """With the remedy; with test keys alone there is no warning."""
    embedded.key(embedded.account("another"), "test")
    with running_server(embedded) as server:
        assert WARNING not in server.log.read_text()
    _, live = open_for_live(embedded, tmp_path)
    with running_server(live) as server:
        said = server.log.read_text()
    assert WARNING in said
    assert "countersign init --time-stamps sigstore,digicert" in said
    assert "Neither a witness nor a time-stamp authority" in live.run("log", "status").stdout
    with running_server(live, WORKERS="2") as server:
        assert server.log.read_text().count(WARNING) == 1


@pytest.mark.both_engines
def test_an_option_of_init_requests_time_stamps(own: Deployment) -> None:
    """It is kept by the deployment, harmless twice, and ended by another word."""
    urls = [known_authorities()[name].url for name in ("digicert", "sigstore")]
    assert anchored(own) == {}
    assert own.read("init", "--time-stamps", "digicert,sigstore")["time_stamps"] == [
        "digicert",
        "sigstore",
    ]
    assert list(anchored(own)) == urls
    assert own.read("init")["time_stamps"] == ["digicert", "sigstore"]
    own.run("init", "--time-stamps", "digicert, sigstore")
    chosen = [one for one in own.read("audit") if one["action"] == "time_stamps_chosen"]
    assert [one["details"] for one in chosen] == [{"authorities": ["digicert", "sigstore"]}]
    own.run("init", "--time-stamps", "none")
    assert anchored(own) == {}


def test_an_authority_unknown_to_the_release_is_refused(embedded: Deployment) -> None:
    """Before any change; the message names the known ones."""
    done = embedded.run("init", "--time-stamps", "sigstore,verisign", check=False)
    assert done.returncode == 1
    assert "'verisign' is not a time-stamp authority of this release" in done.stderr
    assert "sigstore, digicert" in done.stderr
    assert anchored(embedded) == {}


def test_settings_override_the_choice_at_init(embedded: Deployment) -> None:
    embedded.run("init", "--time-stamps", "sigstore")
    settings = {"TIMESTAMP_URLS": "http://127.0.0.1:9/tsa"}
    assert list(anchored(Deployment(data_dir=embedded.data_dir, settings=settings))) == [
        "http://127.0.0.1:9/tsa"
    ]


def test_each_authority_of_the_release_has_a_certificate_that_can_be_read() -> None:
    assert list(known_authorities()) == ["sigstore", "digicert"]
    for one in known_authorities().values():
        timestamp_check(one.certificate)


@pytest.mark.openssl
def test_time_stamps_of_a_chosen_authority_lead_to_its_own_certificate(
    own: Deployment, tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are not stored."""
    place, kept = Place(own, tmp_path), []
    wrong = (authority / "tsa.pem").read_bytes()

    async def act(service: Opened) -> None:
        await place.acknowledged(service)
        await service.log.anchor.anchor()
        kept.append(len(await anchors(service)))

    def answer(query: bytes) -> tuple[int, str, bytes]:
        return 200, "application/timestamp-reply", stamp(authority, query)

    with served(answer) as url:
        for certificate in (wrong, (authority / "ca.pem").read_bytes()):
            known = {"near": Authority("near", url, certificate)}
            for module in (anchoring, authorities):
                monkeypatch.setattr(module, "known_authorities", lambda found=known: found)

            async def choose(service: Opened) -> None:
                await authorities.choose_authorities(service.access, ["near"])

            place.within(choose)
            place.within(act)
    assert kept == [0, 1]


@pytest.mark.one_engine  # a backup of PostgreSQL is the operator's own
def test_a_suspension_is_explained_once(own: Deployment, tmp_path: Path) -> None:
    """Although it suspends the logs of both modes, and the status settles what waits."""
    own.run("backup", str(tmp_path / "backup"))
    for left in own.data_dir.glob("countersign.db*"):
        left.unlink()
    own.run("restore", str(tmp_path / "backup"), "--yes")
    own.run("init")
    done = own.run("log", "status")
    said = (done.stdout + done.stderr).replace("\n", " ")
    assert said.count("was restored from a backup") == 1
    assert [one["suspended"] is not None for one in own.read("log", "status")] == [True, True]
