"""The log's keys change only with the approval of the registered approvers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, text

from countersign.base.config import load_settings
from countersign.base.db.tables import log_proposals
from countersign.base.errors import EvidenceRefused
from countersign.core.log import approvals_sql
from countersign.core.log.rotation import approve
from countersign.operate.bootstrap import open_deployment
from countersign_evidence.approval import check_approvals, make_roster
from tests.sealing.acts import check, policy_of
from tests.sealing.inside import ShiftedClock, opened
from tests.support.service import Deployment

pytestmark = pytest.mark.both_engines


class Person:
    """A person with a key, who signs any shown text."""

    def __init__(self, deployment: Deployment, folder: Path, name: str) -> None:
        self._deployment = deployment
        self._folder = folder
        self._key = folder / f"{name}.key"
        made = deployment.run("log", "approver-key", str(self._key), "--name", name)
        self.vkey = made.stdout.strip()

    def signs(self, proposal: str) -> Path:
        """A file with the signed proposal."""
        file = self._folder / "proposal"
        file.write_text(proposal)
        signed = self._deployment.read(
            "log", "sign-approval", str(file), "--key", str(self._key), "--yes"
        )["signed"]
        out = self._folder / f"{self._key.stem}.signed"
        out.write_text(signed)
        return out

    def approves(self, proposal: str) -> dict[str, Any]:
        """The output of the operator's command for the signed proposal."""
        found: dict[str, Any] = self._deployment.read("log", "approve", str(self.signs(proposal)))
        return found


def people(deployment: Deployment, folder: Path) -> tuple[Person, Person, Person]:
    """Three persons, two of whom approve each change."""
    found = tuple(Person(deployment, folder, name) for name in ("ann", "bo", "cy"))
    keys = [person.vkey for person in found]
    deployment.run("log", "set-approvers", "--threshold", "2", *keys, "--yes")
    ann, bo, cy = found
    return ann, bo, cy


def rotated(deployment: Deployment) -> str:
    """Propose a new key; the text to approve."""
    said = deployment.read("log", "rotate-key", "--yes")
    assert said["carried_out"] is False
    text: str = said["proposal"]
    return text


def facts(deployment: Deployment, type_: str) -> list[dict[str, Any]]:
    """The members of the records of this type."""

    async def read() -> list[dict[str, Any]]:
        async with open_deployment(load_settings(deployment.environment)) as service:
            rows = await service.database.read(
                lambda connection: connection.exec_driver_sql(
                    f"SELECT body FROM deployment_records WHERE type = '{type_}' ORDER BY id"  # noqa: S608
                ).all()
            )
        return [json.loads(bytes(row[0])) for row in rows]

    return asyncio.run(read())


def test_two_persons_rotate_the_key(own: Deployment, tmp_path: Path) -> None:
    """Nothing happens before the second has signed; the log's record has both signatures."""
    ann, bo, cy = people(own, tmp_path)
    before = policy_of(own, "live")
    proposal = rotated(own)
    first = ann.approves(proposal)
    assert (first["carried_out"], first["approved_by"], first["needed"]) == (False, [ann.vkey], 2)
    assert policy_of(own, "live") == before
    second = cy.approves(proposal)
    assert second["carried_out"] is True
    assert len(policy_of(own, "live").logs) == 2
    (record,) = facts(own, "key_rotation")
    roster = make_roster(2, [ann.vkey, bo.vkey, cy.vkey])
    approved, lines = check_approvals(record["approval"].encode(), roster)
    assert {line.name for line in lines} == {"ann", "cy"}
    assert approved.values("new") == [record["new_key"]] == second["vkeys"]
    assert approved.values("old") == [record["old_key"]]
    assert record["threshold"] == 2
    assert check(own)["findings"] == []


def test_one_person_counts_once(own: Deployment, tmp_path: Path) -> None:
    """However often they sign."""
    ann, _, _ = people(own, tmp_path)
    proposal = rotated(own)
    for _ in range(2):
        assert ann.approves(proposal)["carried_out"] is False
    assert len(policy_of(own, "live").logs) == 1


def test_an_unregistered_approver_approves_nothing(own: Deployment, tmp_path: Path) -> None:
    """A signature by an unknown key is refused, also under a known name."""
    people(own, tmp_path)
    (tmp_path / "other").mkdir()
    for name in ("ann", "eve"):
        stranger = Person(own, tmp_path / "other", name)
        done = own.run("log", "approve", str(stranger.signs(rotated(own))), check=False)
        assert done.returncode == 1
        assert "no signature by a key that is trusted" in done.stderr


def test_an_approval_covers_the_exact_change(own: Deployment, tmp_path: Path) -> None:
    """A signature below another text, of an earlier proposal, or that is wrong, does nothing."""
    ann, bo, _ = people(own, tmp_path)
    earlier, newest = rotated(own), rotated(own)
    signed = ann.signs(newest)
    forged = tmp_path / "forged"
    forged.write_text(signed.read_text().replace("overlap 604800", "overlap 1"))
    for file in (ann.signs(earlier), forged):
        done = own.run("log", "approve", str(file), check=False)
        assert done.returncode == 1
        assert "not the proposal that was made last" in done.stderr
    text = ann.signs(newest).read_text()
    forged.write_text(f"{text[:-10]}{'A' if text[-10] != 'A' else 'B'}{text[-9:]}")
    assert own.run("log", "approve", str(forged), check=False).returncode == 1
    ann.approves(newest)
    assert bo.approves(newest)["carried_out"] is True
    done = own.run("log", "approve", str(bo.signs(newest)), check=False)
    assert "The keys of the log have changed" in done.stderr, "nothing is carried out twice"


def test_no_one_changes_the_approvers_alone(own: Deployment, tmp_path: Path) -> None:
    """The present approvers approve their successors; a removed one does not count then."""
    ann, bo, cy = people(own, tmp_path)
    waiting = rotated(own)
    ann.approves(waiting)
    said = own.read("log", "set-approvers", "--threshold", "1", cy.vkey, "--yes")
    assert said["carried_out"] is False
    assert own.read("log", "approvers")["threshold"] == 2
    ann.approves(said["proposal"])
    assert bo.approves(said["proposal"])["carried_out"] is True
    assert own.read("log", "approvers") == {
        "threshold": 1, "approvers": [cy.vkey], "proposal": None,
    }  # fmt: skip
    first, second = facts(own, "approvers")
    assert (first["new_threshold"], first.get("approval")) == (2, None)
    assert (second["new_threshold"], second["threshold"]) == (1, 2)
    assert second["approvers"] == [cy.vkey]
    proposal = rotated(own)
    done = own.run("log", "approve", str(ann.signs(proposal)), check=False)
    assert done.returncode == 1
    assert cy.approves(proposal)["carried_out"] is True


def test_a_proposal_can_be_approved_for_a_week(own: Deployment, tmp_path: Path) -> None:
    """An approval that lies around does nothing later."""
    ann, bo, _ = people(own, tmp_path)
    proposal = rotated(own)
    ann.approves(proposal)
    signed = bo.signs(proposal).read_bytes()

    async def later() -> None:
        async with opened(own, ShiftedClock(8 * 86_400)) as service:
            with pytest.raises(EvidenceRefused, match="could be approved until"):
                await approve(service.log, signed)

    asyncio.run(later())


def test_a_stored_key_that_the_approved_text_does_not_name_never_signs(
    own: Deployment, tmp_path: Path
) -> None:
    """Changing the column of the new key gets no key into the log."""
    ann, bo, _ = people(own, tmp_path)
    rotated(own)
    proposal, before = rotated(own), policy_of(own, "live")

    def change(connection: Connection) -> None:
        # Rows cannot be changed, but a later one with the same text replaces the first.
        keys = "SELECT keys FROM log_proposals WHERE text <> :text AND keys <> :none"
        other = connection.execute(
            text(keys), {"text": proposal.encode(), "none": b"[]"}
        ).scalar_one()
        newest = approvals_sql.newest_proposal(connection)
        assert newest is not None
        changed = replace(newest, id=f"{newest.id}z", keys=other)
        connection.execute(insert(log_proposals), asdict(changed))

    async def by_the_database() -> None:
        async with opened(own) as service:
            await service.database.write(change)

    asyncio.run(by_the_database())
    ann.approves(proposal)
    done = own.run("log", "approve", str(bo.signs(proposal)), check=False)
    assert done.returncode == 1
    assert "not those that its text names" in done.stderr
    assert policy_of(own, "live") == before
    assert facts(own, "key_rotation") == []


def test_two_who_approve_at_the_same_time_carry_it_out_once(
    own: Deployment, tmp_path: Path
) -> None:
    """Whichever comes second does it."""
    ann, bo, _ = people(own, tmp_path)
    proposal = rotated(own)
    notes = [person.signs(proposal).read_bytes() for person in (ann, bo)]

    async def both() -> list[bool]:
        async with opened(own) as one, opened(own) as other:
            done = await asyncio.gather(
                *(
                    approve(service.log, note)
                    for service, note in zip((one, other), notes, strict=True)
                )
            )
        return sorted(change.carried_out for change in done)

    assert asyncio.run(both()) == [False, True]
    assert len(facts(own, "key_rotation")) == 1


def test_a_deployment_begins_without_approvers(own: Deployment) -> None:
    """One person rotates the key alone while none is registered."""
    assert own.read("log", "approvers") == {"threshold": 0, "approvers": [], "proposal": None}
    assert own.read("log", "rotate-key", "--yes")["carried_out"] is True
    done = own.run("log", "set-approvers", "--threshold", "1", "--yes", check=False)
    assert "at most the number of approvers" in done.stderr
