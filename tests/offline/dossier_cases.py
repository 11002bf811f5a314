"""Dossiers that are mutated and recombined: a thousand, the same in each run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any, Final

from countersign_evidence.dossier import SUMS, read_container, sums, write_container, write_dossier
from tests.evidence.dossier_vectors import GOOD, load_maker

COUNT: Final = 1000
_ODD: Final[list[Any]] = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        -1,
        2**53 - 1,
        "",
        "x",
        "0" * 64,
        [],
        ["x"],
        [None],
        {},
        {"a": 1},
    ),
    *("2026-11-20T21:31:00.123Z", "2026-11-20T21:31:00.123Z\n", "\u0661", "__proto__"),
]


def _files(data: bytes) -> dict[str, bytes]:
    files = read_container(data)
    del files[SUMS]
    return files


def _packed(files: dict[str, bytes]) -> bytes:
    return write_container({**files, SUMS: sums(files)})


def _good(draw: random.Random) -> dict[str, bytes]:
    return _files(draw.choice(GOOD).read_bytes())


def _bit(draw: random.Random) -> bytes:
    """One bit of one file, under new sums or old."""
    data = draw.choice(GOOD).read_bytes()
    files = _files(data)
    name = draw.choice([name for name in files if files[name]])
    changed = bytearray(files[name])
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    new = {**files, name: bytes(changed)}
    return _packed(new) if draw.random() < 0.7 else write_container({**new, SUMS: sums(files)})


def _file(draw: random.Random) -> bytes:
    """A file is gone, or there twice, or elsewhere, or another one's."""
    files = _good(draw)
    names = list(files)
    one, other = draw.choice(names), draw.choice(names)
    match draw.randrange(4):
        case 0:
            del files[one]
        case 1:
            files[one + draw.choice(["x", ".json", "/"])] = files[one]
        case 2:
            names.insert(draw.randrange(len(names)), names.pop(names.index(one)))
            files = {name: files[name] for name in names}
        case _:
            files[one] = files[other]
    return _packed(files)


def _head(draw: random.Random) -> bytes:
    """The checkpoint or its path is another, the same in all proofs."""
    files = _good(draw)
    proofs = {name: data for name, data in files.items() if name.endswith(".tlog-proof")}
    note = next(iter(proofs.values())).partition(b"\n\n")[2]
    changed = bytearray(note)
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(3)
    new = bytes(changed) if draw.random() < 0.7 else note[: note.rindex(b"\n", 0, -1) + 1]
    if draw.random() < 0.4:
        one = draw.choice(list(proofs))
        return _packed(files | {one: proofs[one].replace(b"\nindex ", b"\nindex 1", 1)})
    return _packed(files | {name: data.replace(note, new) for name, data in proofs.items()})


def _mixed(draw: random.Random) -> bytes:
    """Files of two orders under one checkpoint."""
    by_name = {path.stem: path for path in GOOD}
    first, second = (
        _files(by_name[name].read_bytes()) for name in ("two-orders", "the-other-order")
    )
    if draw.random() < 0.5:
        first, second = second, first
    others = [name for name in second if first.get(name) != second[name]]
    for name in draw.sample(others, draw.randint(1, min(4, len(others)))):
        ending = name.partition(".")[2]
        prefix = name[:12]
        alike = [one for one in first if one.startswith(prefix) and one.endswith(ending)]
        if alike and draw.random() < 0.6:
            first[draw.choice(alike)] = second[name]
        else:
            first = {name: second[name], **first}
    return _packed(first)


def _sealed(maker: ModuleType, draw: random.Random) -> bytes:
    """The log contains records and disclosures with odd values, which no service writes."""
    records = list(draw.choice([maker.ORDER, maker.hosted(), maker.version_1()]))
    place = draw.randrange(len(records))
    record = records[place]
    if draw.random() < 0.7:
        name = draw.choice([*record.members, "account", "__proto__", "verification"])
        value = draw.choice([*_ODD, *draw.choice(records).members.values()])
        members = {**record.members, name: value}
        if draw.random() < 0.2:
            del members[name]
        records[place] = replace(record, members=members)
    if record.disclosures:
        kept = draw.sample(list(record.disclosures), draw.randint(0, len(record.disclosures)))
        records[place] = replace(
            records[place], disclosures={name: record.disclosures[name] for name in kept}
        )
    try:
        return write_dossier(maker.dossier(*records))
    except (KeyError, TypeError, ValueError):  # no dossier has such a record at all
        return write_dossier(maker.dossier(*draw.choice([maker.ORDER, maker.hosted()])))


def _disclosed(maker: ModuleType, draw: random.Random) -> bytes:
    """The joining disclosures have odd values, which their records bind."""
    field, value = draw.choice(["cbid", "session_id", "verification"]), draw.choice(_ODD)
    personal = {"cbid": maker.CBID, "session_id": maker.SESSION, "verification": maker.CHECK.id}
    names = ("account", "ack_id", "reasons", "obligations", "expires_at")
    own = {n: maker.CLEARED.members[n] for n in names}
    cleared = maker.made(
        "clearance", 21, {**personal, field: value}, cleared=draw.random() < 0.5, **own
    )
    if draw.random() < 0.7:
        cleared = cleared.named(**maker.NAMED)
    check = maker.CHECK if draw.random() < 0.5 else maker.OTHER_CHECK
    return write_dossier(maker.dossier(*maker.PARTIES, check, maker.ACK, cleared))


def _decided(maker: ModuleType, draw: random.Random) -> bytes:
    """Decisions, times and names of all kinds, and members that there are not."""
    odd: dict[str, list[Any]] = {
        "cleared": [True, False],
        "reasons": [[], ["zip_mismatch"]],
        "obligations": [[], [{"type": "label"}], "label"],
        "expires_at": [None, *(time.replace(".123Z", "Z") for time in TIMES)],
        "at": TIMES,
        "test_clock": TIMES,
        "order_named": [True, False, None],
        "paid_at": ["2026-11-20T21:31:00Z", None],
        "more": [1],
        "10": [{"a": 1}],
    }
    records = list(draw.choice([maker.ORDER, maker.hosted()]))
    for place, record in enumerate(records):
        members = dict(record.members)
        kind = str(members["type"])
        names = list(odd) if kind == "clearance" else ["at", "test_clock", "more"]
        if kind == "acknowledgment":
            odd["accepted_at"] = TIMES
            names = ["accepted_at", "test_clock", "more"]
        for name in draw.sample(names, draw.choice([0, 0, 1, 2 if kind == "clearance" else 0])):
            members[name] = draw.choice(odd[name])
        if kind == "notice_event" and draw.random() < 0.2:
            members["notice_version"] = "zz"
        records[place] = replace(record, members=members)
    return write_dossier(maker.dossier(*records))


TIMES: Final = [
    f"{time}.123Z"
    for time in (
        *(
            "2026-11-20T21:31:00",
            "2026-11-20T21:31:30",
            "2026-11-22T00:00:00",
            "2020-01-01T00:00:00",
        ),
        *(
            "2026-02-30T00:00:00",
            "2028-02-29T00:00:00",
            "2026-06-30T23:59:60",
            "0000-01-01T00:00:00",
        ),
    )
]


MOMENTS: Final = [
    f"2026-11-20T21:{at}Z"
    for at in ("20:00.000", "26:01.000", "29:59.999", "30:00.122", "30:00.123", "31:00.123")
] + ["2026-11-20T21:32:00.124Z", "2026-11-25T00:00:00.000Z", "2024-01-01T00:00:00.000Z"]


def _timed(maker: ModuleType, draw: random.Random) -> bytes:
    """An order whose times, methods and reports break rules of the timeline, or just do not."""

    def at(record: Any, **members: object) -> Any:  # noqa: ANN401 - of the maker
        return record.changed(at=draw.choice(MOMENTS), **members)

    def lines() -> dict[str, object]:
        shown, first, last = draw.choices(MOMENTS, k=3)
        method = draw.choice(["typed", "adopted", "adopted", "dictated"])
        later = draw.choice([None, last])
        own: dict[str, object] = {
            "shown_at": shown,
            "initialed_at": first,
            "changed_at": later,
            "method": method,
        }
        return own if method != "typed" or draw.random() < 0.5 else {}

    initials = draw.choices(["JD", "J.D."], k=4)
    *before, check, ack, _ = maker.hosted_as({n: lines() for n in range(1, 5)}, initials)
    if draw.random() < 0.2:
        ack = ack.changed(test_clock=draw.choice(MOMENTS))
    duties: list[Any] = [[], ["adult_signature"], [{"type": "label"}, {"type": "adult_signature"}]]
    cleared = maker.clearance(21, ack.id, draw.choice([check.id, None])).named(**maker.NAMED)
    events = [
        at(maker.notice_event(60 + n, draw.choice(["withdrawn", "enjoined", "reinstated", "read"])))
        for n in range(draw.randint(0, 3))
    ]
    reports = []
    for n in range(draw.randint(0, 4)):
        shipped, delivered = (time[:-5] + "Z" for time in draw.choices(MOMENTS, k=2))
        said = {
            "shipped_at": draw.choice([None, shipped]),
            "delivered_at": draw.choice([None, delivered]),
            "adult_signature_obtained": draw.choice([None, True, False]),
        }
        if draw.random() < 0.4:
            said["corrects"] = f"ful_01m7xdxbmvex7t29vh2x05yy{draw.randint(69, 74)}"
        if draw.random() < 0.2:
            said["order_of_events_confirmed"] = True
        if draw.random() < 0.2:
            said["paid_at"] = shipped
        one = maker.fulfilment(70 + n, cleared.id).named(**maker.NAMED)
        reports.append(replace(one, members={**one.members, **said}))
    decided = at(cleared, obligations=draw.choice(duties))
    return write_dossier(maker.dossier(*before, *events, at(check), ack, decided, *reports))


def _chosen(maker: ModuleType, draw: random.Random) -> bytes:
    """Any records of two orders."""
    two = [*maker.ORDER, *maker.OTHERS]
    chosen = draw.sample(two, draw.randint(1, len(two)))
    shown = [
        replace(
            record,
            disclosures={n: text for n, text in record.disclosures.items() if draw.random() < 0.8},
        )
        for record in chosen
    ]
    return write_dossier(maker.dossier(*two, of=shown))


@cache
def cases() -> dict[str, bytes]:
    """All of them, by name."""
    maker, draw = load_maker(), random.Random(17)
    kinds: list[Callable[[random.Random], bytes]] = [
        *(_bit, _file, _mixed, _head),
        *(lambda d: _sealed(maker, d) for _ in range(3)),
        lambda d: _disclosed(maker, d),
        *(lambda d: _decided(maker, d) for _ in range(3)),
        lambda d: _chosen(maker, d),
        *(lambda d: _timed(maker, d) for _ in range(3)),
    ]

    def made() -> Iterator[tuple[str, bytes]]:
        for number in range(COUNT):
            yield f"case {number}", kinds[number % len(kinds)](draw)

    return dict(made())
