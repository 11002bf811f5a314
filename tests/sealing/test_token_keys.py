"""The log's key on a PKCS#11 token: it signs there, and trouble with the token refuses no act."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from countersign_evidence.note import ED25519, MLDSA_COSIGNATURE, parse_note
from countersign_evidence.proof import parse_proof
from countersign_evidence.verification import verify_file
from tests.cli.serving import wait_until
from tests.sealing.acts import check, get, policy_of
from tests.sealing.live import acknowledge_live, open_for_live
from tests.support.engines import ENGINES, engine_settings
from tests.support.service import Deployment, running_server
from tests.support.softhsm import PIN, make_token

pytestmark = [pytest.mark.softhsm, pytest.mark.both_engines]


@pytest.fixture(params=ENGINES)
def without_token(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """Give an initialised deployment whose key is in the vault, and a token that it may use."""
    token, configuration = make_token(tmp_path / "hsm")
    monkeypatch.setenv("SOFTHSM2_CONF", configuration)
    made = Deployment(data_dir=tmp_path / "data", settings={**engine_settings(request), **token})
    made.run("init")
    return made


def on_token(deployment: Deployment, **more: str) -> Deployment:
    """The same, with new keys on the token."""
    return replace(deployment, settings={**deployment.settings, "LOG_KEYS": "pkcs11", **more})


def begun_on_token(deployment: Deployment, **more: str) -> Deployment:
    """The same, with a new live log: only keys as in these settings sign it."""
    there = on_token(deployment, **more)
    there.run("log", "recover", "--new-epoch", "--yes")
    return there


def signatures(proof: bytes) -> int:
    return len(parse_note(parse_proof(proof).checkpoint).signatures)


def test_the_key_moves_from_the_vault_to_a_token_while_a_server_runs(
    without_token: Deployment, tmp_path: Path
) -> None:
    """Both sign in the overlap, so readers with only the old key can check, too."""
    key, live = open_for_live(without_token, tmp_path)
    old_policy = policy_of(live, "live")
    with running_server(live) as server, server.client(key) as client:
        before = get(client, acknowledge_live(client), "proof")
        on_token(live).run("log", "rotate-key", "--yes")
        after = get(client, acknowledge_live(client), "proof")
    policy = policy_of(live, "live")
    assert (signatures(before), signatures(after)) == (1, 2)
    for proof in (before, after):
        assert verify_file(proof, policy).ok
        assert verify_file(proof, old_policy).ok
    assert verify_file(after, replace(policy, logs=policy.logs[1:])).ok, "the token's key signed"
    assert check(live)["findings"] == []


def test_it_moves_back_to_the_vault(without_token: Deployment, tmp_path: Path) -> None:
    """A log that began on the token; a server without the token signs by the key in the vault."""
    there = begun_on_token(without_token)
    key, _ = open_for_live(there, tmp_path)
    without_token.run("log", "rotate-key", "--yes")
    settings = {n: v for n, v in without_token.settings.items() if not n.startswith("PKCS11")}
    alone = replace(without_token, settings=settings)
    with running_server(alone) as server, server.client(key) as client:
        proof = get(client, acknowledge_live(client), "proof")
    assert verify_file(proof, policy_of(alone, "live")).ok
    (finding,) = check(alone)["findings"]
    assert finding["message"].endswith("is on a token that the settings do not name")


def test_acts_go_on_and_their_records_wait_while_the_token_is_unreachable(
    without_token: Deployment, tmp_path: Path
) -> None:
    """The status says why; nothing is lost, and sealing goes on when the token is back."""
    there = begun_on_token(without_token)
    key, _ = open_for_live(there, tmp_path)
    tokens = tmp_path / "hsm" / "tokens"
    tokens.rename(tmp_path / "hsm" / "gone")
    tokens.mkdir()
    with running_server(there) as server, server.client(key) as client:
        ack_id = acknowledge_live(client)
        evidence = client.get(f"/v1/acknowledgments/{ack_id}").json()["evidence"]
        assert evidence["status"] == "pending"
        wait_until(lambda: "sealing_suspended" in server.log.read_text(), "said")
    (state,) = [s for s in there.read("log", "status") if s["mode"] == "live"]
    assert state["suspended"].startswith(f"The token {there.settings['PKCS11_TOKEN']} cannot be ")
    assert state["waiting"] >= 1
    tokens.rmdir()
    (tmp_path / "hsm" / "gone").rename(tokens)
    with running_server(there) as server, server.client(key) as client:
        assert verify_file(get(client, ack_id, "proof"), policy_of(there, "live")).ok
    assert check(there)["findings"] == []


def test_a_wrong_pin_is_tried_once_in_a_process(without_token: Deployment, tmp_path: Path) -> None:
    """A token locks after a few attempts; a server would make one for every record."""
    there = begun_on_token(without_token)
    key, _ = open_for_live(there, tmp_path)
    pin_file = Path(there.settings["PKCS11_PIN_FILE"])
    pin_file.write_text("0000\n")
    with running_server(there) as server, server.client(key) as client:
        acked = [acknowledge_live(client) for _ in range(5)]
        pin_file.write_text(f"{PIN}\n")
        acked.append(acknowledge_live(client))
        evidence = client.get(f"/v1/acknowledgments/{acked[-1]}").json()["evidence"]
        assert evidence["status"] == "pending", "the right one is not tried before a restart"
        assert "refused the PIN" in server.log.read_text()
    with running_server(there) as server, server.client(key) as client:
        for ack_id in acked:
            assert verify_file(get(client, ack_id, "proof"), policy_of(there, "live")).ok


def test_a_key_missing_on_its_token_is_found(without_token: Deployment) -> None:
    """`log check` lets every key sign."""
    there = on_token(without_token)
    there.run("log", "rotate-key", "--yes")
    assert check(there)["findings"] == []
    token, _ = make_token(without_token.data_dir.parent / "hsm")
    (finding,) = check(replace(there, settings={**there.settings, **token}))["findings"]
    assert " cannot be used: NoSuchKey" in finding["message"]


def test_an_incomplete_token_configuration_is_reported(without_token: Deployment) -> None:
    """Where module, label and PIN do not come together, no command begins."""
    settings = {n: v for n, v in without_token.settings.items() if n != "PKCS11_PIN_FILE"}
    for wrong in (
        settings,
        {n: v for n, v in settings.items() if not n.startswith("PKCS11")} | {"LOG_KEYS": "pkcs11"},
    ):
        done = replace(without_token, settings=wrong).run("log", "status", check=False)
        assert done.returncode != 0
        assert "COUNTERSIGN_PKCS11_MODULE" in done.stderr


def test_a_token_and_ml_dsa_go_together(without_token: Deployment, tmp_path: Path) -> None:
    """The Ed25519 key is on the token, the other in the vault; both sign every checkpoint."""
    there = begun_on_token(without_token, LOG_ML_DSA="true")
    key, _ = open_for_live(there, tmp_path)
    with running_server(there) as server, server.client(key) as client:
        proof = get(client, acknowledge_live(client), "proof")
    policy = policy_of(there, "live")
    assert [log.kind for log in policy.logs] == [ED25519, ED25519, MLDSA_COSIGNATURE]
    for log in policy.logs[1:]:
        assert verify_file(proof, replace(policy, logs=(log,))).ok
    assert check(there)["findings"] == []
