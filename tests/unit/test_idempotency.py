"""Idempotency: one effect per key, the first answer again, and what else may not happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from countersign.base.errors import (
    IdempotencyInProgress,
    IdempotencyKeyReused,
    NoticeNotInForce,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)
from countersign.base.values import Mode
from countersign.core.access.idempotency import (
    LIFETIME,
    Idempotency,
    IdempotencyEntry,
    KeyedRequest,
    slot_taken,
)
from countersign.core.access.key import Principal
from countersign.core.access.secrets import DeploymentSecret
from tests.unit.support import CountedEntropy, HandClock, run

PATH = "/v1/notices/ab1263/acknowledge"


class Kept:
    """Kept answers in memory."""

    def __init__(self) -> None:
        self.entries: dict[bytes, IdempotencyEntry] = {}

    async def get(self, slot: bytes) -> IdempotencyEntry | None:
        return self.entries.get(slot)

    def write(self, entry: IdempotencyEntry) -> None:
        """The act's store, inside its transaction."""
        self.entries[entry.slot] = entry


def principal(account: str = "acct_a", mode: Mode = Mode.TEST) -> Principal:
    return Principal(
        key_id="key_1",
        account_id=account,
        mode=mode,
        scopes=frozenset(),
        credential="secret_key",
    )


class World:
    """The service over a store in memory and a clock that a test moves."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.kept = Kept()
        self.covers = 0
        self.open()

    def open(self) -> None:
        self.service = Idempotency(
            self.kept.get, self.covered, DeploymentSecret(bytes(32)), self.clock, CountedEntropy()
        )

    async def covered(self) -> None:
        """The database's act before it returns a recent response."""
        self.covers += 1

    def slot(
        self,
        body: bytes = b"{}",
        *,
        key: str = "k",
        path: str = PATH,
        method: str = "POST",
        of: Principal | None = None,
    ) -> KeyedRequest:
        return self.service.keyed(of or principal(), method, path, key, body)

    @contextmanager
    def running(self, slot: KeyedRequest) -> Iterator[None]:
        """The server's work around an act."""
        self.service.begin(slot)
        try:
            yield
        finally:
            self.service.end(slot)

    def remember(self, slot: KeyedRequest, answer: bytes) -> None:
        self.kept.write(slot(answer))

    def instead(self, slot: KeyedRequest, failure: Exception) -> bytes | None:
        return run(self.service.kept_instead(slot, failure))

    def answer(self, slot: KeyedRequest) -> bytes | None:
        return run(self.service.kept(slot))


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_response_is_repeated_byte_for_byte(world: World) -> None:
    """Not made again: the same bytes."""
    answer = b'{"ack_id": "ack_1"}\x00\xff'
    world.remember(world.slot(), answer)
    assert world.answer(world.slot()) == answer


def test_a_young_answer_is_returned_only_once_it_is_durable(world: World) -> None:
    """A commit of a moment ago may be on one database server alone."""
    world.remember(world.slot(), b"first")
    world.answer(world.slot())
    assert world.covers == 1
    world.clock.advance(61)
    world.answer(world.slot())
    assert world.covers == 1


def test_an_act_that_finds_its_answer_returns_it(world: World) -> None:
    """Its own transaction has read it, so no further wait is needed."""
    entry = world.slot()(b"first")
    assert world.instead(world.slot(), slot_taken(entry)) == b"first"
    assert world.covers == 0
    with pytest.raises(IdempotencyKeyReused):
        world.instead(world.slot(b"other"), slot_taken(entry))
    for other in (principal("acct_b"), principal(mode=Mode.LIVE)):
        slot = KeyedRequest(world.service, world.slot().slot, world.slot().fingerprint, other)
        assert world.instead(slot, slot_taken(entry)) is None


@pytest.mark.parametrize("failure", [NoticeNotInForce(), OutcomeUnknown(), RuntimeError()])
def test_an_act_that_fails_is_looked_up_before_it_is_refused(
    world: World, failure: Exception
) -> None:
    assert world.instead(world.slot(), failure) is None
    world.remember(world.slot(), b"first")
    assert world.instead(world.slot(), failure) == b"first"
    assert world.covers == 1
    with pytest.raises(IdempotencyKeyReused):
        world.instead(world.slot(b"other"), failure)


def test_an_act_that_another_server_does_at_the_same_time_is_in_progress(world: World) -> None:
    world.remember(world.slot(), b"first")
    assert world.instead(world.slot(), IdempotencyInProgress()) is None


@pytest.mark.parametrize("unavailable", [StorageUnavailable, OutcomeUnknown, Overloaded])
def test_a_possible_effect_is_never_reported_as_undone(
    world: World, unavailable: type[Exception]
) -> None:
    """The look-up fails too: only where the act itself was not done, that is the answer."""

    async def fail() -> None:
        raise unavailable

    world.remember(world.slot(), b"first")
    world.covered = fail  # type: ignore[method-assign] # the database does not respond
    world.open()
    assert world.instead(world.slot(), OutcomeUnknown()) is None
    with pytest.raises(unavailable):
        world.instead(world.slot(), NoticeNotInForce())


def test_without_an_answer_there_is_none_to_return(world: World) -> None:
    """Errors are not kept: the next request is judged again."""
    with world.running(world.slot()):
        pass
    assert world.answer(world.slot()) is None


def test_another_body_under_the_same_key_is_refused(world: World) -> None:
    """The response is never that of the first."""
    world.remember(world.slot(b'{"a":1}'), b"first")
    with pytest.raises(IdempotencyKeyReused):
        world.answer(world.slot(b'{"a":2}'))


@pytest.mark.parametrize(
    "other",
    [
        {"key": "K"},
        {"key": "k "},
        {"path": "/v1/notices/other/acknowledge"},
        {"method": "PUT"},
        {"of": principal("acct_b")},
        {"of": principal(mode=Mode.LIVE)},
    ],
    ids=["key", "longer key", "path", "method", "account", "mode"],
)
def test_a_key_counts_for_its_account_mode_method_and_path_only(
    world: World, other: dict[str, object]
) -> None:
    """Two vendors may use the same key, and so may two operations."""
    world.remember(world.slot(), b"first")
    assert world.answer(world.slot(**other)) is None  # type: ignore[arg-type] # one of the keywords
    with world.running(world.slot()), world.running(world.slot(**other)):  # type: ignore[arg-type] # as above
        pass


@pytest.mark.parametrize("other", [principal("acct_b"), principal(mode=Mode.LIVE)])
def test_an_answer_is_never_given_to_another_account_or_mode(
    world: World, other: Principal
) -> None:
    """Not even if they had the same slot."""
    slot = world.slot()
    world.remember(slot, b"first")
    assert world.answer(KeyedRequest(world.service, slot.slot, slot.fingerprint, other)) is None


def test_answers_are_kept_for_24_hours(world: World) -> None:
    """Up to the last moment, and not in the next."""
    world.remember(world.slot(), b"first")
    world.clock.advance(LIFETIME.total_seconds() - 0.001)
    assert world.answer(world.slot()) == b"first"
    world.clock.advance(0.001)
    assert world.answer(world.slot()) is None
    assert LIFETIME.total_seconds() == 24 * 3600


def test_an_expired_answer_does_not_bind_the_key_to_its_body(world: World) -> None:
    """After a day the key is new."""
    world.remember(world.slot(b"old"), b"first")
    world.clock.advance(LIFETIME.total_seconds())
    assert world.answer(world.slot(b"new")) is None


def test_the_same_request_while_it_runs_has_to_wait(world: World) -> None:
    """With the time to wait, and without a second effect."""
    with (
        world.running(world.slot()),
        pytest.raises(IdempotencyInProgress) as caught,
        world.running(world.slot()),
    ):
        pass
    assert caught.value.retry_after >= 1


def test_another_body_while_the_first_runs_is_refused(world: World) -> None:
    """Waiting would not help it."""
    with (
        world.running(world.slot(b"1")),
        pytest.raises(IdempotencyKeyReused),
        world.running(world.slot(b"2")),
    ):
        pass


@pytest.mark.parametrize("failure", [None, RuntimeError])
def test_a_finished_request_holds_nothing(world: World, failure: type[Exception] | None) -> None:
    """However it ended, the retry is let in; also after a neighbour was refused."""
    slot = world.slot()
    if failure is None:
        with world.running(slot):
            pass
    else:
        with pytest.raises(failure), world.running(slot):
            raise failure
    with world.running(slot):
        pass


def test_a_refused_neighbour_does_not_let_go_of_the_first(world: World) -> None:
    """The third is refused as the second was."""
    with world.running(world.slot()):
        for _ in range(2):
            with pytest.raises(IdempotencyInProgress), world.running(world.slot()):
                pass


def test_stored_responses_are_encrypted_and_name_no_key_or_body(world: World) -> None:
    """The store sees keyed hashes and ciphertext."""
    entry = world.slot(b"Zebulon", key="order-17")(b"ack_123")
    stored = entry.slot + entry.fingerprint + entry.response
    for secret in (b"Zebulon", b"order-17", b"ack_123"):
        assert secret not in stored


def test_the_same_answer_is_never_encrypted_the_same_way(world: World) -> None:
    """A fresh nonce each time."""
    first, second = (world.slot()(b"answer") for _ in range(2))
    assert first.response != second.response


def test_an_answer_of_yesterday_opens_today(world: World) -> None:
    """The key of its day is found from the answer itself."""
    world.remember(world.slot(), b"first")
    world.clock.advance(LIFETIME.total_seconds() / 2)
    world.remember(world.slot(key="later"), b"second")
    assert world.answer(world.slot()) == b"first"
    assert world.answer(world.slot(key="later")) == b"second"
