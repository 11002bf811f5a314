"""The checks of a vendor's webhook endpoints, by their responses to valid and invalid messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from countersign_conformance.history import History, failed, many, not_seen, passed
from countersign_conformance.model import (
    ACTS,
    WEBHOOK,
    Finding,
    Observation,
    Probe,
)

SENT: Final = "sent"
"""The code of a message that is on its way; its response is another observation."""
_GENUINE: Final = (Probe.GENUINE, Probe.GENUINE_AFTER)
_FORGED: Final = (Probe.UNSIGNED, Probe.FOREIGN_KEY, Probe.ALTERED)
_NO_ENDPOINT: Final = "No message was sent: the account has no enabled endpoint in test mode."
_NOTHING_TAKEN: Final = "Genuine messages were refused too, so this refusal proves nothing."
_REACTION_MAX: Final = timedelta(seconds=10)
"""An act this long after the last message is not a reaction to it."""
_BUSY: Final = 429
"""Says that there were too many messages, and nothing about this one."""


def duplicate_accepted(history: History) -> Finding:
    """A message that comes twice is accepted twice, and processed once."""
    responses = _responses(history)
    if not responses:
        return not_seen(_NO_ENDPOINT)
    wanted = [one for one in responses if one.probe in {*_GENUINE, Probe.AGAIN}]
    refused = [one for one in wanted if not _accepted(one)]
    if refused:
        return failed(
            f"Of {many(len(wanted), 'genuine message')} {_wrong_responses(refused)}.", *refused
        )
    twice_asked = {one.endpoint for one in wanted if one.probe is Probe.AGAIN}
    if not {one.endpoint for one in responses} <= twice_asked:
        return not_seen("The second message was not sent.")
    by_itself = _acts(history, None, *_FORGED, Probe.OLD)
    twice = (_acts(history, Probe.GENUINE) & _acts(history, Probe.AGAIN)) - by_itself
    if twice:
        names = ", ".join(sorted({operation for operation, _ in twice}))
        return failed(f"After the second message the same requests were made again: {names}.")
    return passed(
        f"{many(len(wanted), 'genuine message')} accepted, including the second message with "
        "the same id."
    )


def signature_checked(history: History) -> Finding:
    """Only messages signed with the endpoint's secret are accepted."""
    return _refused(history, _FORGED)


def age_checked(history: History) -> Finding:
    """A message that was signed long ago is refused."""
    return _refused(history, (Probe.OLD,))


def _refused(history: History, probes: Sequence[Probe]) -> Finding:
    responses = _responses(history)
    if not responses:
        return not_seen(_NO_ENDPOINT)
    wanted = [one for one in responses if one.probe in probes]
    # An endpoint that refuses everything has checked nothing.
    took = [
        {one.endpoint for one in responses if one.probe is probe and _accepted(one)}
        for probe in _GENUINE
    ]
    taken = set.intersection(*took)
    checked = [one for one in wanted if one.endpoint in taken]
    believed = [one for one in wanted if _accepted(one)]
    wrong = believed or [one for one in checked if not 400 <= one.status < 500]
    if wrong:
        return failed(f"Of {many(len(wanted), 'false message')} {_wrong_responses(wrong)}.", *wrong)
    if len(checked) < len(wanted) or not checked:
        return not_seen(_NOTHING_TAKEN)
    if any(one.status == _BUSY for one in checked):
        return not_seen(f"A false message got {_BUSY}, which neither accepts nor refuses it.")
    return passed(f"{many(len(checked), 'false message')} refused.")


def _wrong_responses(wrong: Sequence[Observation]) -> str:
    responses = sorted({f"{one.probe}: {one.status or one.code}" for one in wrong})
    endpoints = sorted({one.endpoint for one in wrong if one.endpoint})
    text = f"{len(wrong)} got the wrong response ({', '.join(responses)})"
    return f"{text} from {', '.join(endpoints)}" if endpoints else text


def _accepted(one: Observation) -> bool:
    return 200 <= one.status < 300


def _responses(history: History) -> list[Observation]:
    return [one for one in history.of(WEBHOOK) if one.code != SENT]


def _acts(history: History, *probes: Probe | None) -> set[tuple[str, str]]:
    """The vendor's acts between one of these messages and the next.

    None: acts that no message can have caused, before the first or well after the last.
    """
    done: set[tuple[str, str]] = set()
    last: Probe | None = None
    sent_at = None
    for one in history.seen:
        if last is Probe.GENUINE_AFTER and sent_at and one.at - sent_at > _REACTION_MAX:
            last = None
        if one.operation == WEBHOOK and one.code == SENT:
            last, sent_at = one.probe, one.at
        elif last in probes and one.operation in ACTS and one.done and one.body is not None:
            done.add((one.operation, one.body))
    return done
