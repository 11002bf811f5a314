"""The last step of the checkout: authorise the payment, place the order, lead to the notice."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from oscar.apps.checkout import views as oscar
from oscar.apps.payment.exceptions import UnableToTakePayment

from countersign_client import CountersignError
from countersign_django.orders import CannotSell
from outfitter.sales import selling
from outfitter.sales.models import Purchase


class PaymentDetailsView(oscar.PaymentDetailsView):
    def handle_payment(self, order_number: str, total: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Oscar's
        """Authorise the payment of an order that can be sold. Nothing is captured here."""
        basket = self.request.basket
        try:
            selling.needed(basket, self.get_shipping_address(basket))
        except CannotSell as error:
            raise UnableToTakePayment(str(error)) from error
        except CountersignError as error:
            raise UnableToTakePayment(
                "We cannot take orders for the moment. Nothing was charged."
            ) from error
        self.add_payment_source(selling.authorised(order_number, total))
        self.add_payment_event("Authorised", total.incl_tax, reference=order_number)

    def handle_successful_order(self, order: Any) -> HttpResponse:  # noqa: ANN401 - Oscar's
        """The order is placed. Its page asks for the needed data and redirects to the notice.

        The answer from above does not count: basket and address could still be changed in another
        tab.
        """
        super().handle_successful_order(order)
        Purchase.objects.create(order=order)
        return redirect("sales:order", order.number)
