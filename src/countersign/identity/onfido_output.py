"""What a workflow of Onfido puts into the `output` of its runs, as the account declares it."""

from __future__ import annotations

from typing import Literal

import msgspec


class Mapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a fact stands in `output`, and what vouches for it."""

    member: str
    """Its name; with dots for one inside another: `doc.properties.date_of_birth`."""
    source: Literal["document", "database", "proof_of_address"]


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which facts the account's workflow puts into `output`."""

    date_of_birth: Mapped | None = None
    postal_code: Mapped | None = None
    country: Mapped | None = None
    """Of the address that `postal_code` is of."""
    expires_on: Mapped | None = None
    """Of the document."""

    def check(self) -> None:
        """Tell what cannot be meant.

        Raises:
            ValueError: saying what.
        """
        declared = (self.date_of_birth, self.postal_code, self.country, self.expires_on)
        if any("" in mapped.member.split(".") for mapped in declared if mapped is not None):
            raise ValueError("`output` contains an empty name in a `member`")
        if self.country is not None and self.postal_code is None:
            raise ValueError(
                "`output` declares `country` without the `postal_code` that it belongs to"
            )

    @property
    def proves_all(self) -> bool:
        """Whether the document report has nothing to add that a decision needs.

        It is asked for all the same, for the document's number, and believed before the output.
        """
        return None not in {self.date_of_birth, self.postal_code, self.expires_on}
