"""What a request of a dossier can ask for."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from countersign.base.http.schemas import Request
from countersign.core.acknowledgments.model import ALL_FIELDS, NO_FIELD
from countersign.core.clearances.clear import SHIPPING_FIELD, VERIFICATION_FIELD
from countersign.core.clearances.read import CARRIER_FIELD, TRACKING_FIELD

FIELDS: Final = (
    *ALL_FIELDS,
    *(SHIPPING_FIELD, VERIFICATION_FIELD, CARRIER_FIELD, TRACKING_FIELD),
    *("provider_identity_session_id", "result", "evidence_sha256", "override"),
)
"""The personal fields of all records in a dossier."""
_FIELD: Final = f"({'|'.join(FIELDS)})"


class DossierQuery(Request, frozen=True, kw_only=True):
    """What a dossier discloses, and under which checkpoint."""

    disclose: (
        Annotated[
            str,
            Meta(
                description="The personal fields to show, over all records, separated by commas: "
                + ", ".join(f"`{name}`" for name in FIELDS)
                + f", or `{NO_FIELD}`. Left out: all of them.",
                examples=["initials_per_line,verification,shipping"],
                extra_json_schema={"pattern": f"^({NO_FIELD}|{_FIELD}(,{_FIELD})*)$"},
            ),
        ]
        | None
    ) = None
    size: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=2**53 - 1,
                examples=[815],
                description="The size of the checkpoint of the log to prove it by. Records that "
                "it does not hold are left out.",
            ),
        ]
        | None
    ) = None
