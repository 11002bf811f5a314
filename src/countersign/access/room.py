"""The room of access: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.accounts_sql import Accounts as AccountRows
from countersign.access.accounts_sql import Keys as KeyRows
from countersign.access.audit import Audit
from countersign.access.audit_sql import AuditLog
from countersign.access.authenticate import Authenticate
from countersign.access.idempotency import Idempotency
from countersign.access.manage_accounts import Accounts, Keys
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clocks import TestClocks
from countersign.db.database import Database
from countersign.ports import Clock, Entropy, SandboxStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may ask, and what operators did."""

    database: Database
    secret: DeploymentSecret
    clock: Clock
    entropy: Entropy
    account_rows: AccountRows
    authenticate: Authenticate
    idempotency: Idempotency
    audit: Audit
    accounts: Accounts
    keys: Keys
    test_clocks: TestClocks


def open_access(
    database: Database,
    secret: DeploymentSecret,
    sandbox_rows: SandboxStore,
    *,
    operator: str,
    clock: Clock,
    entropy: Entropy,
) -> Access:
    """The room over an open database; `operator` is who acts at the command line."""
    keys, rows = KeyRows(database), AccountRows(database)
    audit = Audit(AuditLog(database), clock, entropy, operator)
    return Access(
        database=database,
        secret=secret,
        clock=clock,
        entropy=entropy,
        account_rows=rows,
        authenticate=Authenticate(keys, secret, clock, entropy),
        idempotency=Idempotency(database, secret, clock, entropy),
        audit=audit,
        accounts=Accounts(rows, audit, clock, entropy),
        keys=Keys(keys, audit, secret, clock, entropy),
        test_clocks=TestClocks(sandbox_rows, clock),
    )
