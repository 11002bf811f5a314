"""Which personal fields of an acknowledgment are shown: `?disclose=`."""

from __future__ import annotations

from countersign.acknowledgments.find import Found
from countersign.acknowledgments.model import NO_FIELD, PERSONAL_FIELDS
from countersign.errors import Erased, InvalidRequest


def fields_to_show(disclose: str | None) -> frozenset[str] | None:
    """The fields that the query parameter names; None: all.

    Raises:
        InvalidRequest: it names a field that there is not.
    """
    if disclose is None:
        return None
    names = frozenset(disclose.split(",")) if disclose != NO_FIELD else frozenset[str]()
    unknown = sorted(names - set(PERSONAL_FIELDS))
    if unknown:
        msg = (
            f"The query parameter disclose names {unknown[0][:64]!a}, which is not a personal "
            f"field. Use {', '.join(PERSONAL_FIELDS)}, or {NO_FIELD}."
        )
        raise InvalidRequest(msg)
    return names


def shown_of(found: Found, fields: frozenset[str] | None) -> tuple[str, ...]:
    """The encoded disclosures of these fields; None: of all.

    Raises:
        Erased: some are asked for by name, and they were erased.
    """
    if found.disclosures is None:
        if fields:
            raise Erased
        return ()
    return tuple(
        encoded for name, encoded in found.disclosures.items() if fields is None or name in fields
    )
