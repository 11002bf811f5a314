"""The products, the page of an order, and the packing page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin.views.decorators import staff_member_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.generic import ListView
from oscar.apps.catalogue.models import Product

from countersign_client import CountersignError
from countersign_django.models import CountersignOrder, State
from countersign_django.orders import CannotSell
from countersign_django.views import CheckoutMixin
from outfitter.sales import selling
from outfitter.sales.models import Purchase


class CatalogueView(ListView):
    """All products, on one page."""

    queryset = Product.objects.browsable().order_by("title")
    template_name = "outfitter/catalogue.html"


class OrderView(CheckoutMixin, View):
    """The order of this customer, or of this guest's browser."""

    def get(self, request: HttpRequest, number: str) -> HttpResponse:
        purchase = get_object_or_404(Purchase, order__number=number)
        order, user = purchase.order, request.user
        mine = order.user == user if user.is_authenticated else order.user is None
        if order.user is None and request.session.get("checkout_order_id") != order.id:
            mine = False
        # A link that was mailed works in any browser.
        if not mine and not order.check_verification_hash(request.GET.get("key", "")):
            raise Http404
        try:
            waits = order.status in {"Waiting", "On hold"}
            if waits and (purchase.state == State.NONE or not selling.as_decided(purchase)):
                return self._begin(purchase)
            return self.come_back(purchase)
        except CountersignError:
            return self._page(purchase, status=503)

    def _begin(self, purchase: Purchase) -> HttpResponse:
        """The order's needs, as it was placed; asked again if the service did not respond then."""
        order = purchase.order
        try:
            needed = selling.needed(order, order.shipping_address)
        except CannotSell:
            if order.status == "Waiting":
                selling.stop(order)
            needed = None
        else:
            if needed is None:
                selling.follow(purchase)
        if needed is None:
            purchase.refresh_from_db()
            return self._page(purchase)
        cbid = selling.known_buyer(order.user)
        place = self.request.get_full_path()
        return self.lead_to_notice(purchase, needed, return_path=place, cbid=cbid)

    def order_open(self, order: CountersignOrder) -> HttpResponse:
        return self._page(order)

    def order_cleared(self, order: CountersignOrder) -> HttpResponse:
        # If it waits still: it was changed, and changed back.
        selling.release(order.order)
        return self._page(order)

    def order_not_cleared(self, order: CountersignOrder) -> HttpResponse:
        return self._page(order)

    def _page(self, purchase: CountersignOrder, status: int = 200) -> HttpResponse:
        return render(self.request, "outfitter/order.html", {"purchase": purchase}, status=status)


@method_decorator(staff_member_required, name="dispatch")
class DispatchView(View):
    """Paid orders with the duties for each parcel."""

    def get(self, request: HttpRequest) -> HttpResponse:
        waiting = Purchase.objects.filter(order__status__in=["Released", "On hold", "Shipped"])
        purchases = waiting.select_related("order").order_by("pk")
        return render(request, "outfitter/dispatch.html", {"purchases": purchases})

    def post(self, request: HttpRequest) -> HttpResponse:
        purchase = get_object_or_404(Purchase, pk=request.POST["purchase"])
        number, form = purchase.order.number, request.POST
        try:
            if "refund" in form and purchase.order.status in {
                "Released",
                "On hold",
                "Shipped",
            }:
                selling.refund(purchase.order)
                messages.info(request, f"Order {number} was refunded.")
            elif purchase.order.status != "Released":
                messages.error(request, f"Do not ship order {number}: {purchase.order.status}.")
            elif reasons := selling.ship(purchase, **_parcel(form)):
                messages.error(request, f"Do not ship order {number}: {', '.join(reasons)}.")
            else:
                messages.success(request, f"Order {number} was shipped, and reported.")
        except CountersignError as error:
            messages.error(request, f"Do not ship order {number} now: {error.message}")
        return redirect("sales:dispatch")


def _parcel(form: Any) -> dict[str, Any]:  # noqa: ANN401 - a QueryDict
    return {
        "carrier": form.get("carrier", ""),
        "tracking_number": form.get("tracking_number", ""),
        "signed": "signed" in form,
    }
