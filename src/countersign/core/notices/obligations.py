"""Coverage and obligations of a notice version: data of the version.

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

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from countersign.base.http.schemas import in_full

ProductClass = Annotated[
    str, Meta(pattern=in_full("^[a-z][a-z0-9_]*$"), max_length=64, examples=["accessory"])
]
ADULT_SIGNATURE: Final = "adult_signature"
COMPARED_ZIP: Final[Mapping[str, Any]] = {"type": "compared", "what": "zip"}
"""Ship only to the ZIP code that was compared; no more than that was."""
_CLASSES: Final = "product_classes"
_USUAL_CLASSES: Final = frozenset(
    {"accessory", "manufacturing_machine", "firearm_accessory", "firearm_manufacturing_machine"}
)
"""The default coverage of a version. Not barrels: they are sold in person only
(SB 704)."""
KNOWN_CLASSES: Final = _USUAL_CLASSES | {"barrel"}
"""The classes that an order may name although no notice does."""


class Following(Struct, frozen=True):
    """Coverage and obligations of a notice version."""

    classes: frozenset[str]
    """The classes of goods that the notice suffices for."""
    obligations: tuple[Mapping[str, Any], ...]

    def covers(self, product_class: str | None) -> bool:
        """Whether the notice suffices for this class; a class that is not given is not checked."""
        return product_class is None or product_class in self.classes


NOTHING: Final = Following(_USUAL_CLASSES, ())
"""Of a version that states nothing: the usual classes, and no obligations."""


def following(data: Any) -> Following:  # noqa: ANN401 - any canonical JSON
    """Coverage and obligations of a version; unknown types are passed on unread."""
    given = data if isinstance(data, list | tuple) else () if data is None else (data,)
    tables = [t if _has_type(t) else {"type": "other", "value": t} for t in given]
    named = [table.get("sufficient_for") for table in tables if table["type"] == _CLASSES]
    classes = frozenset(
        name
        for names in named
        if isinstance(names, list)
        for name in names
        if isinstance(name, str)
    )
    return Following(
        classes if named else _USUAL_CLASSES,
        tuple(table for table in tables if table["type"] != _CLASSES),
    )


def _has_type(table: Any) -> bool:  # noqa: ANN401 - any canonical JSON
    return isinstance(table, dict) and isinstance(table.get("type"), str)
