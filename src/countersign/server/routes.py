"""Every route that is served: the operations of the API, and the pages about them."""

import asyncio
from typing import Any, Final

from countersign.core.acknowledgments import evidence_routes as evidence
from countersign.core.acknowledgments import routes as acknowledgments
from countersign.core.buyers import routes as buyers
from countersign.core.checkout import sessions as checkout
from countersign.core.clearances import routes as clearances
from countersign.core.dossiers import routes as dossiers
from countersign.core.events import routes as events
from countersign.core.gate.route import Call, Reply, Route
from countersign.core.log import routes as log
from countersign.core.notices import routes as notices
from countersign.core.sandbox import routes as test_helpers
from countersign.core.webhooks import routes as webhooks
from countersign.hosted import self_service
from countersign.hosted.pages import current_routes as current_checkout
from countersign.hosted.pages import page
from countersign.operate import deployment as staff_deployment
from countersign.operate import routes as operations
from countersign.server import console_host as console
from countersign.server.request_log import REQUESTS
from countersign.staff.acts import accounts as staff_accounts
from countersign.staff.acts import audit as staff_audit
from countersign.staff.acts import buyers as staff_buyers
from countersign.staff.acts import erasures as staff_erasures
from countersign.staff.acts import holds as staff_holds
from countersign.staff.acts import keys as staff_keys
from countersign.staff.acts import notices as staff_notices
from countersign.staff.acts import orders as staff_orders
from countersign.staff.acts import people as staff_people
from countersign.staff.acts import reviews
from countersign.staff.acts import today as staff_today

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
    *REQUESTS.routes,
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
        "/docs/{path*}",
        "/robots.txt",
        "/favicon.ico",
    )
)
