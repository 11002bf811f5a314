"""The two files of a simulator: `NAME.toml` has its sessions, `NAME.json` what it returns.

`NAME.json` has the objects of the provider, as its description shows them. `NAME.toml` has the
rows: `[[sessions]]` for the fixed sessions, and `[outcomes]` for created ones, by progress or
outcome. A row says how its session differs from a plain approval.

In both, a text `$word` is a value, such as a member of the person (`$first`) or a day; inside a
longer text it is interpolated. `$null` is null, and `$absent` takes a member away.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Final
from zlib import crc32

from countersign_simulators.base import Session, merged
from countersign_simulators.hosted import Created, person_of
from countersign_simulators.people import Person, days_of

_FIXED: Final[Mapping[str, object]] = {"null": None, "absent": ...}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played(Session):
    """A simulated session; those of a provider have more members."""

    number: int = 0
    person: Person | None = None
    """The person on the document; None: none was shown."""
    failure: str | None = None
    """The failure when it is requested."""
    environment: str = "live"
    created_at: float | None = None
    """Unix seconds; None for a fixed session, which was created a moment ago."""
    changed_at: float | None = None
    """Unix seconds, when its state last changed; None for a fixed session."""


class Table:
    """The files of the provider with this name.

    A row has the members of `[usual]`, then those of `[like.NAME]` if it has `like = "NAME"`, then
    its own. Its `person` is the name of one of `[people]`, or a table, which may have a `like` too;
    all begin with `[person]`. `personal` names the members of the person that no one may see,
    `more_personal` has further texts, and `others` further people in the session.
    """

    def __init__(self, name: str) -> None:
        folder = Path(__file__).parent
        self._table = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        self._bodies = json.loads((folder / f"{name}.json").read_bytes())

    def rows(self, now: float) -> list[dict[str, Any]]:
        """The members of each fixed session, with days as of `now` in Unix seconds."""
        days = days_of(now)
        return [self._row(each, days) for each in self._table["sessions"]]

    def row_of(self, created: Created, now: float, **words: object) -> dict[str, Any]:
        """The members of a created session at this time, in Unix seconds.

        `words` are further ones for the row.
        """
        plays, person = (created.outcome or created.state).value, person_of(created, now)
        common: dict[str, Any] = {
            "session_id": created.session_id,
            "scenario": plays,
            "shipping_zip": created.zip,
            "subject_reference": created.reference,
            "personal": (),
            "number": created.made.get("number", 0),
            "person": person,
            "environment": created.made.get("environment", "live"),
            "created_at": created.created_at,
            "changed_at": created.changed_at,
        }
        begun = self._begun(self._table["outcomes"].get(plays, {}))
        own = {name: value for name, value in begun.items() if name not in common}
        row: dict[str, Any] = filled(own, person.words() | {"zip": created.zip} | words)
        return row | common

    def person(self, given: str | Mapping[str, Any], words: Mapping[str, object]) -> Person:
        """A person of the table, by their name or members."""
        return Person(**filled(self._members(given), words))

    def body(self, name: str, person: Person | None = None, /, **values: object) -> dict[str, Any]:
        """An object of the provider with these values, and those of a person."""
        body: dict[str, Any] = filled(
            self._bodies[name], (person.words() if person else {}) | values
        )
        return body

    def _row(self, own: Mapping[str, Any], days: Mapping[str, object]) -> dict[str, Any]:
        row = self._begun(own)
        name = row.pop("name", "")
        words: dict[str, object] = {
            **days,
            "name": name,
            "small": name.lower(),
            # So that no two sessions are the same buyer by accident.
            "mark": f"{crc32(name.encode()):08X}",
            "n": f"{own.get('number', 0):02d}",
        }
        given = row.pop("person", None)
        person = None if given is None else self.person(given, words)
        shown = [] if person is None else [person]
        shown += [self.person(each, words) for each in row.pop("others", ())]
        if person is not None:
            words |= person.words() | {"zip": person.postcode[:5]}
        row = dict(filled(row, words))
        texts = [text for each in shown for text in each.texts(*row["personal"])]
        texts += row.pop("more_personal", ())
        return row | {"person": person, "personal": tuple(dict.fromkeys(texts))}

    def _members(self, given: str | Mapping[str, Any]) -> dict[str, Any]:
        """The members of a person, on top of shared ones."""
        own = dict(self._table["people"][given] if isinstance(given, str) else given)
        like = own.pop("like", None)
        return merged(self._table["person"] if like is None else self._members(like), own)

    def _begun(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """A row, on top of the shared one."""
        like = self._table["like"][own["like"]] if "like" in own else {}
        row = merged(merged(self._table["usual"], like), own)
        row.pop("like", None)
        return row


def filled(value: Any, words: Mapping[str, object]) -> Any:  # noqa: ANN401 - any JSON
    """The value with the words in the place of their names; `$null` and `$absent` are known."""
    return _filled(value, {**_FIXED, **words})


def _filled(value: Any, words: Mapping[str, object]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {name: _filled(member, words) for name, member in value.items()}
    if isinstance(value, list):
        return [_filled(member, words) for member in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    name = value[1:] if value.startswith("$") else ""
    return words[name] if name in words else Template(value).substitute(words)
