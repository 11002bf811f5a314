"""Hosted acknowledgments: written in the transaction of a checkout session, with their process."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from hashlib import sha256

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.base.errors import (
    EmptyInitials,
    InitialsCountMismatch,
    NotFound,
    StorageUnavailable,
)
from countersign.core.acknowledgments.acknowledge import write_hosted
from countersign.core.log import tree_sql
from countersign_evidence.verification import verify_file
from tests.sealing.acts import INITIALS, acknowledge, check, get, policy_of, shown
from tests.sealing.inside import opened
from tests.support import postgres
from tests.support.hosted import PROCESS, PROCESS_JSON, acknowledge_hosted, prepared
from tests.support.service import Deployment, running_server


def test_a_hosted_acknowledgment_is_read_back_proved_and_erased(own: Deployment) -> None:
    """Found by its own fields, with one event; its process is disclosed and erased, too."""
    account = own.account("vendor")

    async def hosted() -> str:
        async with opened(own) as service:
            return await acknowledge_hosted(service, account)

    ack_id = asyncio.run(hosted())
    policy = policy_of(own)
    with running_server(own) as server, server.client(own.key(account)) as client:
        address = f"/v1/acknowledgments/{ack_id}"
        read = client.get(address).json()
        assert (read["capture"], read["process"]) == ("hosted", PROCESS_JSON)
        assert [*read["process"]] == [*PROCESS.__struct_fields__]
        assert (read["ip"], read["ip_source"]) == ("198.51.100.1", "connection")
        assert read["notice_version_source"] == "asserted"
        for name, value in (("session_id", "cs_hosted"), ("cbid", "cb_hosted")):
            found = client.get("/v1/acknowledgments", params={name: value}).json()["data"]
            assert [one["ack_id"] for one in found] == [ack_id]
        by_vendor = client.get(f"/v1/acknowledgments/{acknowledge(client)}").json()
        assert (by_vendor["capture"], by_vendor["process"]) == ("vendor_api", None)
        verdict = verify_file(get(client, ack_id, "dossier"), policy)
        assert verdict.ok, verdict.line()
        assert (verdict.record["capture"], verdict.record["credential"]) == (
            "hosted",
            "checkout_session",
        )
        assert len(verdict.record["_sd"]) == 6
        assert shown(verdict)["process"] == PROCESS_JSON
        for name in ("process", "initials_per_line"):
            verdict = verify_file(get(client, ack_id, "dossier", f"?disclose={name}"), policy)
            assert [*shown(verdict)] == [name]
        postgres.settle()
        events = [
            event["type"]
            for event in client.get("/v1/events").json()["data"]
            if event["data"] == {"ack_id": ack_id}
        ]
        assert events.count("acknowledgment.created") == 1
        own.run("erase", ack_id, "--yes")
        read = client.get(address).json()
        assert (read["capture"], read["process"]) == ("hosted", None)
        verdict = verify_file(get(client, ack_id, "dossier"), policy)
        assert (verdict.ok, shown(verdict)) == (True, {})
    assert check(own)["findings"] == []


def test_a_rolled_back_session_leaves_no_record(own: Deployment) -> None:
    """It does not stop later records: the log has no gap."""
    account = own.account("vendor")

    async def hosted() -> str:
        async with opened(own) as service:
            made = await prepared(service, account, INITIALS)

            def act(connection: Connection) -> None:
                write_hosted(connection, [made])
                raise NotFound

            with pytest.raises(NotFound):
                await service.database.write(act)
            assert await acknowledge_hosted(service, account) != made.id
            await service.log.seal.settle()
            return made.id

    lost = asyncio.run(hosted())
    with running_server(own) as server, server.client(own.key(account)) as client:
        assert client.get(f"/v1/acknowledgments/{lost}").status_code == 404
        assert len(client.get("/v1/acknowledgments").json()["data"]) == 1
    assert check(own)["findings"] == []


def test_the_rules_for_initials_match_those_of_any_acknowledgment(embedded: Deployment) -> None:
    account = embedded.account("vendor")

    async def refused() -> None:
        async with opened(embedded) as service:
            for initials, error in (
                (INITIALS[1:], InitialsCountMismatch),
                ([*INITIALS[1:], " "], EmptyInitials),
            ):
                with pytest.raises(error):
                    await prepared(service, account, initials)
            with pytest.raises(ValueError, match="lines"):
                await prepared(
                    service, account, INITIALS, replace(PROCESS, lines=PROCESS.lines[1:])
                )

    asyncio.run(refused())


def test_the_receipt_is_about_the_record_that_is_written_also_with_parties(
    own: Deployment,
) -> None:
    """A receipt is made before the transaction: a party described meanwhile fails it."""
    account = own.account("vendor")
    own.run("operator", "describe", "--legal-name", "Evidence Example LLC")

    async def act() -> None:
        async with opened(own) as service:
            made = await prepared(service, account, INITIALS)
            await service.database.write(write_hosted, [made])
            assert made.receipt is not None
            assert f"record {b64encode(made.digest).decode()}\n" in made.receipt
            stored = await service.database.read(tree_sql.record_bodies, [made.id])
            assert next(map(sha256, stored.values())).digest() == made.digest
            late = await prepared(service, account, INITIALS)
            describe = ("accounts", "describe", account, "--legal-name", "Parts Example LLC")
            await asyncio.to_thread(own.run, *describe)
            with pytest.raises(StorageUnavailable):
                await service.database.write(write_hosted, [late])
            await service.database.write(write_hosted, [await prepared(service, account, INITIALS)])

    asyncio.run(act())
