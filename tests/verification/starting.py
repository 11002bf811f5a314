"""A deployment in this process that starts identity checks itself, and buyers at their pages."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from countersign.base.values import CHECKOUT_SESSION, Mode, base32
from countersign.core.access.account import create_account
from countersign.core.access.reach import AccountReach
from countersign.core.buyers import settings, started
from countersign.core.buyers.identity_check import IdentityCheck
from countersign_simulators.base import Reply, Request
from countersign_simulators.stripe import TEST_KEY
from tests.support.providers import Playing
from tests.verification.inside import Insider, Stage

ZIP = "94110"
RETURN_URL = "https://verify.example/c/chk/return"
_numbers = itertools.count(1)


def a_reference() -> str:
    """The identifier of a checkout session that there could be."""
    return f"{CHECKOUT_SESSION}_{base32(next(_numbers))}"


@dataclass(frozen=True)
class Starter:
    """An account, with keys of one mode."""

    stage: Stage
    who: AccountReach
    references: dict[str, str] = field(default_factory=dict)
    """The reference of each session."""

    def start(
        self,
        reference: str | None = None,
        *,
        attempt: int = 1,
        shipping_zip: str = ZIP,
        provider: str | None = None,
    ) -> IdentityCheck:
        """Have the provider make a session."""
        reference = reference or a_reference()
        made = self.stage.do(self.starting(reference, attempt, shipping_zip, provider))
        self.references[made.provider_session] = reference
        return made

    async def starting(
        self, reference: str, attempt: int = 1, zip_: str = ZIP, provider: str | None = None
    ) -> IdentityCheck:
        """The same, on the way."""
        return await started.start(
            self.stage.opened.buyers,
            self.who,
            provider=provider,
            reference=reference,
            attempt=attempt,
            return_url=RETURN_URL,
            locale="en",
            shipping_zip=zip_,
        )

    def ask(
        self, made: IdentityCheck, reference: str | None = None, shipping_zip: str = ZIP
    ) -> IdentityCheck:
        """Ask the provider now."""
        reference = reference or self.references[made.provider_session]
        return self.stage.do(self.asking(made, reference, shipping_zip))

    async def asking(
        self, made: IdentityCheck, reference: str, shipping_zip: str = ZIP
    ) -> IdentityCheck:
        """The same, on the way."""
        return await started.ask(
            self.stage.opened.buyers,
            self.who,
            provider=made.provider,
            session_id=made.provider_session,
            reference=reference,
            shipping_zip=shipping_zip,
        )

    def found(self, made: IdentityCheck) -> tuple[IdentityCheck | None, int]:
        """The facts that are known without a request."""
        reference = self.references[made.provider_session]
        database = self.stage.opened.access.database
        return self.stage.do(database.read(started.check_of, reference))

    def judge(self, cbid: str, shipping_zip: str | None = None) -> IdentityCheck:
        """Whether a known buyer is verified for this account."""
        judging = started.judge_known(self.stage.opened.buyers, self.who, cbid, shipping_zip)
        return self.stage.do(judging)

    def names(self) -> tuple[str, ...]:
        """The providers that a buyer may use."""
        return self.stage.do(started.providers_for(self.stage.opened.buyers, self.who))

    def add(self, played: Playing, credentials: Mapping[str, object] | None = None) -> None:
        """Give the account a further provider, as `accounts verification add` does."""
        room, account_id, mode = self.stage.opened.buyers, self.who.account_id, self.who.mode
        held = json.dumps(credentials or played.simulator.credentials).encode()
        self.stage.do(settings.add(room, account_id, mode, played.name, held, played.url))

    def drop(self, provider: str) -> bool:
        """Take it away, as `accounts verification drop` does."""
        room, account_id, mode = self.stage.opened.buyers, self.who.account_id, self.who.mode
        return self.stage.do(settings.drop(room, account_id, mode, provider))

    def verified(self, shipping_zip: str = ZIP) -> tuple[IdentityCheck, IdentityCheck]:
        """A buyer who goes through it all."""
        made = self.start(shipping_zip=shipping_zip)
        walk(made, "verified", shipping_zip)
        return made, self.ask(made, shipping_zip=shipping_zip)


def walk(made: IdentityCheck, outcome: str, zip_: str = ZIP) -> None:
    """Go through every step of the provider's page to this outcome."""
    walk_to(made.url, outcome, zip_)


def walk_to(url: str, outcome: str, zip_: str = ZIP) -> None:
    """The same at the page with this address."""
    for form in ({}, {}, {"zip": zip_}, {}, {"outcome": outcome}):
        reply = httpx2.post(url, data=form, trust_env=False, verify=False)
        assert reply.status_code in {200, 303}, reply.text


def live_starter(stage: Stage, provider: str | Playing = "stripe", **rules: Any) -> Starter:  # noqa: ANN401
    """An account that verifies live buyers with a simulated provider."""
    return starter_of(stage.insider(provider, **rules))


def starter_of(insider: Insider, mode: Mode = Mode.LIVE) -> Starter:
    """An account that has its provider."""
    return Starter(insider.stage, AccountReach(insider.account_id, mode))


def credentials_of_test_mode(played: Playing) -> Mapping[str, object]:
    """Credentials for the test mode of the simulated Stripe."""
    return {**played.simulator.credentials, "api_key": TEST_KEY}


def sandbox_starter(stage: Stage, played: Playing) -> Starter:
    """An account whose test keys use the provider's own test mode, and that has no live one."""
    account = stage.do(create_account(stage.opened.access, f"sandbox {next(_numbers)}"))
    made = Starter(stage, AccountReach(account.id, Mode.TEST))
    made.add(played, credentials_of_test_mode(played))
    return made


def counted(stage: Stage, *tables: str) -> Sequence[int]:
    """How many rows these tables have."""
    return [stage.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in tables]  # noqa: S608 - our own names


def one_document(_: Request, reply: Reply) -> Reply:
    """Have the provider show the same made-up document to everybody."""
    return replace(reply, body=re.sub(rb'"R[0-9]{10}"', b'"R0000000001"', reply.body))
