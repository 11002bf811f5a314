"""Every route that is served: the operations of the API, and the pages about them."""

import asyncio
from typing import Any, Final

from countersign import console_host as console
from countersign.acknowledgments import evidence_routes as evidence
from countersign.acknowledgments import routes as acknowledgments
from countersign.buyers import routes as buyers
from countersign.checkout import current_routes as current_checkout
from countersign.checkout import page
from countersign.checkout import routes as checkout
from countersign.clearances import routes as clearances
from countersign.console import accounts as staff_accounts
from countersign.console import audit as staff_audit
from countersign.console import buyers as staff_buyers
from countersign.console import deployment as staff_deployment
from countersign.console import erasures as staff_erasures
from countersign.console import holds as staff_holds
from countersign.console import keys as staff_keys
from countersign.console import notices as staff_notices
from countersign.console import orders as staff_orders
from countersign.console import people as staff_people
from countersign.console import reviews
from countersign.console import today as staff_today
from countersign.dossiers import routes as dossiers
from countersign.events import routes as events
from countersign.http.reply import Call, Reply
from countersign.http.route import Route
from countersign.log import routes as log
from countersign.notices import routes as notices
from countersign.operations import routes as operations
from countersign.sandbox import routes as test_helpers
from countersign.self_service import page as self_service
from countersign.webhooks import routes as webhooks

ROUTES: Final[tuple[Route[Any], ...]] = (
    *notices.ROUTES,
    *acknowledgments.ROUTES,
    *evidence.ROUTES,
    *log.ROUTES,
    *buyers.ROUTES,
    *reviews.ROUTES,
    *events.ROUTES,
    *webhooks.ROUTES,
    *clearances.ROUTES,
    *dossiers.ROUTES,
    *checkout.ROUTES,
    *current_checkout.ROUTES,
    *page.ROUTES,
    *self_service.ROUTES,
    *test_helpers.ROUTES,
    *operations.ROUTES,
    *staff_accounts.ROUTES,
    *staff_keys.ROUTES,
    *staff_notices.ROUTES,
    *staff_holds.ROUTES,
    *staff_orders.ROUTES,
    *staff_erasures.ROUTES,
    *staff_audit.ROUTES,
    *staff_buyers.ROUTES,
    *staff_deployment.ROUTES,
    *staff_people.ROUTES,
    *staff_today.ROUTES,
    *console.ROUTES,
)


async def _document(_: object, call: Call) -> Reply:
    # Loaded, and rendered, when it is first asked for: it would make every start slower.
    from countersign.server.documents import document  # noqa: PLC0415

    return await asyncio.to_thread(document, call.path)


PAGES: Final[tuple[Route[object], ...]] = tuple(
    Route(address=f"GET {path}", handler=_document)
    for path in (
        "/",
        "/openapi.json",
        "/docs",
        "/docs/errors",
        "/docs/search.js",
        "/docs/{path*}",
        "/robots.txt",
        "/favicon.ico",
    )
)
