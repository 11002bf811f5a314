"""Records say which description of operator, account and capture process was in force."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import Connection, select

from countersign.base.db.tables import disclosures, shred_keys
from countersign.base.values import Mode
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.record import open_disclosures
from countersign_evidence.disclosure import read_disclosure
from tests.sealing.acts import acknowledge, check, get, policy_of
from tests.sealing.inside import opened
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.long

BUYER = {"test_mode": True, "provider_identity_session_id": "vs_1", "shipping_zip": "94111"}
NAME = "Evidence Example Inc."


def logged(own: Deployment, mode: Mode = Mode.TEST) -> list[bytes]:
    """The records of a log, in its order."""

    async def read() -> list[bytes]:
        async with opened(own) as service:
            await service.log.seal.settle()
            log = (await service.log.seal.current())[mode]
            head = await service.database.read(logs_sql.latest, log.id)
            assert head
            entries = await service.database.scan(tree_sql.entries, log.id, 0, head.size)
            bodies = await service.database.scan(
                tree_sql.record_bodies, [id_ for id_, _ in entries]
            )
            return [bodies[id_] for id_, _ in entries]

    return asyncio.run(read())


def of_type(records: list[bytes], type_: str) -> list[dict[str, Any]]:
    """The records of one type, with their own digest."""
    found = [json.loads(body) | {"digest": sha256(body).hexdigest()} for body in records]
    return [record for record in found if record["type"] == type_]


def order(client: httpx2.Client, session: str) -> tuple[str, str, str]:
    """One order from the identity check to the delivery: its buyer, acknowledgment, clearance."""
    cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]
    ack_id = acknowledge(client, session_id=session, cbid=cbid)
    asked = {"ack_id": ack_id, "cbid": cbid, "session_id": session, "shipping_zip": "94111"}
    cleared = client.post("/v1/clearances", json=asked | {"product_class": "accessory"})
    assert cleared.json()["cleared"], cleared.text
    clearance_id: str = cleared.json()["clearance_id"]
    path = f"/v1/clearances/{clearance_id}/fulfilment"
    done = client.post(path, json={"adult_signature_obtained": True, "carrier": "a carrier"})
    assert done.status_code == 200, done.text
    return cbid, ack_id, clearance_id


def test_every_record_of_an_order_binds_the_parties_in_force(own: Deployment) -> None:
    """Those of the moment of writing, without a restart; a missing one is null."""
    account = own.account("vendor")
    statement = own.data_dir.parent / "statement.txt"
    statement.write_text("Each line has a field of its own.\n", encoding="utf-8")
    with running_server(own) as server, server.client(own.key(account)) as client:
        before = acknowledge(client)
        operator = own.read("operator", "describe", "--legal-name", NAME)
        after_operator = acknowledge(client)
        party = own.read("accounts", "describe", account, "--address", "1 Way, Reno")
        process = own.read("accounts", "capture-process", account, "--statement", str(statement))
        _, ack_id, _ = order(client, "order-1")
    found = logged(own)
    acks = {record["id"]: record for record in of_type(found, "acknowledgment")}
    nothing = {"operator_record": None, "account_record": None, "capture_process": None}
    assert {n: acks[before][n] for n in nothing} == nothing
    of_operator = operator["sha256"]["test"]
    assert {n: acks[after_operator][n] for n in nothing} == nothing | {
        "operator_record": of_operator
    }
    assert acks[ack_id]["capture_process"] == process["sha256"]["test"]
    types = ("acknowledgment", "verification", "clearance", "fulfilment")
    last = [of_type(found, type_)[-1] for type_ in types]
    assert {(r["v"], r["operator_record"], r["account_record"]) for r in last} == {
        (2, of_operator, party["sha256"]["test"])
    }
    assert check(own)["findings"] == []


def test_a_description_is_one_record_in_the_log_of_each_mode(own: Deployment) -> None:
    """Each names the previous one, and omitted members stay."""
    account = own.account("vendor")
    own.run("operator", "describe", "--legal-name", NAME, "--contact", "a@example.com")
    own.run("operator", "describe", "--contact", "")
    own.run("accounts", "describe", account, "--licence", "1-23")
    for mode in Mode:
        first, second = of_type(logged(own, mode), "operator")
        assert (first["legal_name"], first["contact"]) == (NAME, "a@example.com")
        assert (second["legal_name"], second["contact"]) == (NAME, None)
        assert (first["previous"], second["previous"]) == (None, first["digest"])
        assert second["_sd"] == []
        [described] = of_type(logged(own, mode), "account")
        assert (described["account"], described["name"]) == (account, "vendor")
    assert own.read("operator", "show")["legal_name"] == NAME
    assert own.read("accounts", "show", account)["described"]["licence"] == "1-23"
    actions = [entry["action"] for entry in own.read("audit")]
    assert actions[-3:] == ["operator_described", "operator_described", "account_described"]
    assert check(own)["findings"] == []


def test_a_statement_has_versions(own: Deployment, tmp_path: Path) -> None:
    """The one before stays in the log."""
    account, file = own.account("vendor"), tmp_path / "statement.txt"
    for text in ("First.", "Second.\n\tIndented.\n"):
        file.write_text(text, encoding="utf-8")
        own.run("accounts", "capture-process", account, "--statement", str(file))
    first, second = of_type(logged(own), "capture_process")
    assert (first["version"], first["statement"]) == (1, "First.")
    assert (second["version"], second["statement"]) == (2, "Second.\n\tIndented.")
    assert second["previous"] == first["digest"]


@pytest.mark.parametrize(
    "words",
    [("--legal-name", "two\nlines"), ("--address", "x" * 501), ()],
    ids=["control", "long", "nothing"],
)
def test_unprintable_descriptions_are_not_recorded(
    embedded: Deployment, words: tuple[str, ...]
) -> None:
    """A description is printed on certificates."""
    assert embedded.run("operator", "describe", *words, check=False).returncode == 1
    assert of_type(logged(embedded), "operator") == []


@pytest.mark.parametrize("text", [b"", b" \n", b"\xff", b"a\x1b[2J", b"x" * 20_001, b"x" * 90_000])
def test_an_unusable_statement_is_refused(
    embedded: Deployment, tmp_path: Path, text: bytes
) -> None:
    account, file = embedded.account("vendor"), tmp_path / "statement.txt"
    file.write_bytes(text)
    done = embedded.run(
        "accounts", "capture-process", account, "--statement", str(file), check=False
    )
    assert done.returncode == 1
    assert of_type(logged(embedded), "capture_process") == []


def test_a_clearance_names_the_identity_check_that_it_relied_on(own: Deployment) -> None:
    """As a disclosure, which is erased with the others."""
    account = own.account("vendor")
    with running_server(own) as server, server.client(own.key(account)) as client:
        _, _, clearance_id = order(client, "order-1")
    [verification] = of_type(logged(own), "verification")

    def _sealed(connection: Connection, record_id: str) -> Sequence[Any]:
        rows = select(disclosures.c.payload, shred_keys.c.key).join(
            shred_keys, shred_keys.c.record_id == disclosures.c.record_id
        )
        return connection.execute(rows.where(disclosures.c.record_id == record_id)).all()

    async def shown() -> dict[str, Any]:
        async with opened(own) as service:
            [row] = await service.database.scan(_sealed, clearance_id)
            encoded = await open_disclosures(
                service.vault.vault, account, clearance_id, row.payload, row.key
            )
            return {name: value for _, name, value in map(read_disclosure, encoded)}

    assert asyncio.run(shown())["verification"] == verification["id"]


def test_readers_accept_the_dossier_of_an_acknowledgment_that_binds(own: Deployment) -> None:
    """They show the bound parties."""
    account = own.account("vendor")
    own.run("operator", "describe", "--legal-name", NAME)
    made_file, policy = own.data_dir.parent / "dossier.zip", own.data_dir.parent / "policy.txt"
    with running_server(own) as server, server.client(own.key(account)) as client:
        made_file.write_bytes(get(client, acknowledge(client), "dossier"))
    policy.write_text(own.run("log", "policy", "--mode", "test").stdout, encoding="utf-8")
    assert policy_of(own).logs
    done = own.run("verify", str(made_file), "--policy", str(policy))
    digest = own.read("operator", "show")["sha256"]["test"]
    assert f"record of the operator: SHA-256 {digest}" in done.stderr
    assert "record of the account: none was in force" in done.stderr
