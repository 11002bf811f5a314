"""Looking into the database for anything that is only half there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, Table, select

from countersign.base.db.engine import Purpose, database_url, open_engine
from countersign.base.db.tables import (
    buyers,
    data_keys,
    disclosures,
    idempotency_keys,
    log_entries,
    log_pending,
    records,
    shred_keys,
    verifications,
    zip_attempts,
)
from countersign.core.access.secrets import DeploymentSecret
from countersign_evidence.disclosure import b64url
from tests.support.service import Deployment
from tests.support.vault import StoredVault


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of the database, checked to be consistent."""

    ack_ids: frozenset[str]
    cbids: frozenset[str]
    kept_answers: int


def inspect(deployment: Deployment) -> Contents:
    """The stored data; every act of the load had an Idempotency-Key."""
    rows = _read(
        deployment,
        records,
        disclosures,
        buyers,
        verifications,
        zip_attempts,
        data_keys,
        shred_keys,
        log_entries,
        log_pending,
    )
    vault = StoredVault(deployment, rows[data_keys])
    keys = {row.record_id: row.key for row in rows[shred_keys]}
    secret = DeploymentSecret.from_text((deployment.data_dir / "secret.key").read_text())

    # Each record has its disclosures, and each disclosure its record.
    disclosed = {row.record_id: row for row in rows[disclosures]}
    assert {row.id for row in rows[records]} == set(disclosed)
    for record in rows[records]:
        assert sha256(record.body).digest() == record.digest
        row = disclosed[record.id]
        assert (row.account_id, row.mode) == (record.account_id, record.mode)
        opened = vault.open(row, keys[record.id])
        digests = [b64url(sha256(d.encode()).digest()) for d in opened]
        assert sorted(digests) == json.loads(record.body)["_sd"]

    # Each record is sealed once, or waits for it.
    sealed = [row.record_id for row in rows[log_entries]]
    waiting = [row.record_id for row in rows[log_pending]]
    assert len(set(sealed + waiting)) == len(sealed + waiting)
    assert set(disclosed) <= set(sealed + waiting)

    # Each buyer has its verification, which counted its ZIP code.
    verified = Counter(row.cbid for row in rows[verifications])
    assert verified == Counter(row.cbid for row in rows[buyers])
    counted = Counter((row.subject_index, row.zip_index) for row in rows[verifications])
    assert counted == Counter((row.subject_index, row.zip_index) for row in rows[zip_attempts])

    # Each kept answer has its act, and each act its kept answer.
    kept = [
        json.loads(secret.open_answer(row.response, row.slot)) for row in rows[idempotency_keys]
    ]
    ack_ids = frozenset(row.id for row in rows[records] if row.type == "acknowledgment")
    cbids = frozenset(row.cbid for row in rows[buyers])
    assert Counter(k["ack_id"] for k in kept if "ack_id" in k) == Counter(ack_ids)
    assert {k["cbid"] for k in kept if "cbid" in k} == cbids
    return Contents(ack_ids, cbids, len(kept))


def _read(deployment: Deployment, *tables: Table) -> dict[Table, Sequence[Row[Any]]]:
    """Read whole tables at one point in time."""
    url = database_url(deployment.settings.get("DATABASE_URL"), deployment.data_dir)
    engine = open_engine(url, Purpose.WRITE)
    if url.get_backend_name() == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    try:
        with engine.connect() as connection:
            return {
                table: connection.execute(select(table)).all()
                for table in (*tables, idempotency_keys)
            }
    finally:
        engine.dispose()
