"""The webhook, and the buyer's way to the notice and back."""

from __future__ import annotations

import logging
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from countersign_client import CountersignError, InvalidSignature, Webhooks
from countersign_django import orders
from countersign_django.conf import configuration
from countersign_django.models import CountersignOrder, State
from countersign_django.receiving import receive

logger: Final = logging.getLogger("countersign_django")


@csrf_exempt
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Receive a message: 400 if it is not authentic, 503 if it must be sent again."""
    conf = configuration()
    try:
        event = Webhooks().unwrap(request.body, request.headers, secret=conf.webhook_secret)
    except InvalidSignature as error:
        logger.warning("A webhook was refused: %s", error)
        return HttpResponse(status=400)
    except ValueError as error:
        logger.error("settings.COUNTERSIGN has no WEBHOOK_SECRET that works: %s.", error)  # noqa: TRY400 - a traceback says no more
        return HttpResponse(status=503)
    try:
        receive(event)
    except CountersignError:
        logger.exception("The event %s could not be processed.", event.id)
        return HttpResponse(status=503)
    return HttpResponse(status=204)


class CheckoutMixin:
    """For the views of a checkout: the way to the notice, and the return from it."""

    request: HttpRequest

    def lead_to_notice(
        self, order: CountersignOrder, needed: orders.Needed, *, return_path: str, cbid: str = ""
    ) -> HttpResponse:
        """Begin the session of an order, and send the buyer to its page."""
        url = orders.begin(
            order,
            needed,
            return_url=self.request.build_absolute_uri(return_path),
            cbid=cbid,
            locale=getattr(self.request, "LANGUAGE_CODE", ""),
        )
        return redirect(url)

    def come_back(self, order: CountersignOrder) -> HttpResponse:
        """The page for the buyer at the return address. Its query decides nothing, and is not read.

        The buyer may not be done; the webhook may have been earlier.
        """
        match orders.refresh(order):
            case State.OPEN:
                return self.order_open(order)
            case State.CLEARED | State.OVERRIDDEN | State.NOT_NEEDED:
                return self.order_cleared(order)
            case _:
                return self.order_not_cleared(order)

    def order_open(self, order: CountersignOrder) -> HttpResponse:
        """The buyer came back too early: by default, redirect to the notice again."""
        return redirect(order.notice_url)

    def order_cleared(self, order: CountersignOrder) -> HttpResponse:
        raise NotImplementedError

    def order_not_cleared(self, order: CountersignOrder) -> HttpResponse:
        raise NotImplementedError
