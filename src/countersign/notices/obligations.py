"""What a notice version suffices for and what has to follow its order: data of the version.

`obligations` of a notice file is a list of tables, each with a `type` and whatever belongs to it:

    [[obligations]]
    type = "product_classes"
    sufficient_for = ["accessory", "manufacturing_machine"]

    [[obligations]]
    type = "package_label"
    text = "…"

    [[obligations]]
    type = "adult_signature"

Two types mean something here: `product_classes` says which classes of goods the notice suffices
for, and with `adult_signature` an order is closed only when one was obtained. All but the first
are handed on as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

ADULT_SIGNATURE: Final = "adult_signature"
COMPARED_ZIP: Final[Mapping[str, Any]] = {"type": "compared", "what": "zip"}
"""Ship only to the ZIP code that was compared; no more than that was."""
_CLASSES: Final = "product_classes"
_SUFFICIENT_FOR: Final = "sufficient_for"
_UNNAMED: Final = "other"
_USUAL_CLASSES: Final = frozenset(
    {"accessory", "manufacturing_machine", "firearm_accessory", "firearm_manufacturing_machine"}
)
"""What a version suffices for that does not say so. Not barrels: they are sold in person only
(SB 704)."""
KNOWN_CLASSES: Final = _USUAL_CLASSES | {"barrel"}
"""The classes that an order may name although no notice does."""


class Following(Struct, frozen=True):
    """What follows from a notice version."""

    classes: frozenset[str]
    """The classes of goods that the notice suffices for."""
    obligations: tuple[Mapping[str, Any], ...]

    def covers(self, product_class: str | None) -> bool:
        """Whether the notice suffices for this class; a class that is not given is not checked."""
        return product_class is None or product_class in self.classes


NOTHING: Final = Following(_USUAL_CLASSES, ())
"""What follows from a version that says nothing."""


def following(data: Any) -> Following:  # noqa: ANN401 - any canonical JSON
    """What follows from the `obligations` of a version; forms not known are handed on unread."""
    tables = list(_tables(data))
    named = [table for table in tables if table["type"] == _CLASSES]
    given = [names for t in named if isinstance(names := t.get(_SUFFICIENT_FOR), list)]
    return Following(
        frozenset(n for names in given for n in names if isinstance(n, str))
        if named
        else _USUAL_CLASSES,
        tuple(table for table in tables if table["type"] != _CLASSES),
    )


def _tables(data: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - any canonical JSON
    for item in data if isinstance(data, list | tuple) else () if data is None else (data,):
        if isinstance(item, dict) and isinstance(item.get("type"), str):
            yield item
        else:
            yield {"type": _UNNAMED, "value": item}
