"""The last step of the checkout: authorise the payment, place the order, lead to the notice."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from oscar.apps.checkout import views as oscar
from oscar.apps.payment.exceptions import UnableToTakePayment

from countersign_client import CountersignError
from countersign_django.orders import CannotSell, Needed
from countersign_django.views import CheckoutMixin
from outfitter.sales import selling
from outfitter.sales.models import Purchase


class PaymentDetailsView(CheckoutMixin, oscar.PaymentDetailsView):
    needed: Needed | None = None

    def handle_payment(self, order_number: str, total: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Oscar's
        """Authorise the payment of an order that can be sold. Nothing is captured here."""
        basket = self.request.basket
        try:
            self.needed = selling.needed(basket, self.get_shipping_address(basket))
        except CannotSell as error:
            raise UnableToTakePayment(str(error)) from error
        except CountersignError as error:
            raise UnableToTakePayment(
                "We cannot take orders for the moment. Nothing was charged."
            ) from error
        self.add_payment_source(selling.authorised(order_number, total))
        self.add_payment_event("Authorised", total.incl_tax, reference=order_number)

    def handle_successful_order(self, order: Any) -> HttpResponse:  # noqa: ANN401 - Oscar's
        """The order is placed: if it needs nothing it is released, else the notice comes first."""
        thanks = super().handle_successful_order(order)
        purchase = Purchase.objects.create(order=order)
        if self.needed is None:
            selling.release(order)
            return thanks
        place = reverse("sales:order", args=[order.number])
        try:
            return self.lead_to_notice(
                purchase, self.needed, return_path=place, cbid=selling.known_buyer(order.user)
            )
        except CountersignError:
            # The order waits, and its page leads to the notice as soon as the service responds.
            return redirect(place)
