"""Every route but those of the pages made from them; `make openapi` runs this module."""

import sys
from typing import Any, Final

from countersign.acknowledgments import evidence_routes as evidence
from countersign.acknowledgments import routes as acknowledgments
from countersign.buyers import routes as buyers
from countersign.clearances import routes as clearances
from countersign.events import routes as events
from countersign.http.openapi import openapi_text
from countersign.http.route import Route
from countersign.log import routes as log
from countersign.notices import routes as notices
from countersign.operations import routes as operations
from countersign.sandbox import routes as test_helpers
from countersign.webhooks import routes as webhooks

ROUTES: Final[tuple[Route[Any], ...]] = (
    *notices.ROUTES,
    *acknowledgments.ROUTES,
    *evidence.ROUTES,
    *log.ROUTES,
    *buyers.ROUTES,
    *events.ROUTES,
    *webhooks.ROUTES,
    *clearances.ROUTES,
    *test_helpers.ROUTES,
    *operations.ROUTES,
)

if __name__ == "__main__":
    sys.stdout.buffer.write(openapi_text(ROUTES).encode())
