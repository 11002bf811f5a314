"""Each keyed hash and each personal column is declared once, with its table."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy import Column, LargeBinary, MetaData, String, Table
from sqlalchemy.types import TypeEngine

import countersign
from countersign.base.db import tables
from countersign.base.db.tables import (
    PERSONAL_INFO,
    Field,
    GoesWith,
    blanks,
    buyers,
    metadata,
    personal_columns,
)
from tests.unit.house import modules_of

FIELDS = get_args(Field)
OF_NO_ONE = {
    *("account_brands.logo", "anchors.body", "api_keys.digest", "audit_chain.digest"),
    *("audit_chain.salt", "checkpoints.note", "checkpoints.root", "clearance_keys.public_key"),
    *("clearance_keys.seed", "data_keys.wrapped", "deployment.value", "deployment_records.body"),
    *("deployment_records.digest", "further_providers.credentials", "log_approvals.line"),
    *("log_entries.digest", "log_heads.root", "log_keys.seed", "log_keys.token_id"),
    *("log_pending.digest", "log_proposals.keys", "log_proposals.text", "log_tiles.hashes"),
    *("log_tiles.root", "notice_versions.body", "parties.digest", "person_links.digest"),
    *("person_passkeys.public_key", "person_sessions.digest", "rate_shares.name"),
    *("records.body", "records.digest", "shred_keys.key", "verification_settings.credentials"),
    *("webhook_secrets.sealed", "idempotency_keys.fingerprint", "idempotency_keys.slot"),
    *("checkout_sessions.token_digest", "kept_slots.slot", "order_acts.key"),
}
"""Bytes that are neither a keyed hash of personal input nor personal text.

The key of an order is one of the vendor's session, and stays: so an order keeps its identifier.
"""


def test_each_field_is_declared_at_a_column() -> None:
    """So the erasure and its tests know every field name of keyed hashes."""
    declared = {
        field
        for column in personal_columns(*get_args(GoesWith))
        for field in column.info[PERSONAL_INFO][1]
    }
    assert declared == {*FIELDS} - {"conformance"}


def test_each_column_of_bytes_declares_its_owner() -> None:
    """A new one is either declared, or named here as belonging to no one."""
    columns = [column for table in metadata.sorted_tables for column in table.c]
    hidden = {str(column) for column in columns if isinstance(column.type, LargeBinary)}
    assert hidden - {str(column) for column in personal_columns(*get_args(GoesWith))} == OF_NO_ONE
    assert all(PERSONAL_INFO in column.info for column in columns if column.name == "cbid")
    made = [c for c in columns if c.name.endswith("_index") and PERSONAL_INFO in c.info]
    assert all(column.info[PERSONAL_INFO].fields for column in made)


@pytest.mark.parametrize(("name", "kind"), [("cbid", String), ("reference_index", LargeBinary)])
def test_an_undeclared_table_of_orders_or_buyers_stops_each_erasure(
    name: str, kind: type[TypeEngine[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no declaration covers, no erasure would erase."""
    with_notes = MetaData()
    Table(
        "vendor_notes", with_notes, Column("id", String(40), primary_key=True), Column(name, kind)
    )
    monkeypatch.setattr(tables, "metadata", with_notes)
    with pytest.raises(LookupError, match=f"vendor_notes.{name}"):
        personal_columns.__wrapped__("content")


def test_no_keyed_hash_is_made_under_another_field() -> None:
    """Type checking covers fields in variables; this covers literal ones."""
    written = [
        call.args[1].value
        for module in modules_of(Path(countersign.__file__).parent)
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if call.func.attr == "blind_index" and isinstance(call.args[1], ast.Constant)
    ]
    assert len(written) > 10
    assert {*written} <= {*FIELDS}


def test_the_remaining_row_of_a_revoked_buyer_has_no_personal_data() -> None:
    """All data of a buyer is overwritten if the row stays."""
    bare = blanks(buyers, "buyer")
    assert bare["reasons"] == bare["proofs"] == "[]"
    assert {name for name, value in bare.items() if value is None} == {
        *("attempted_by", "dismissed", "expires_at", "expiry_due_at", "proposal"),
        *("reminder_due_at", "verified_at"),
    }
