"""The addresses of the project: the app's, the admin's, and where a buyer comes back to."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views import View

from countersign_django.models import CountersignOrder
from countersign_django.views import CheckoutMixin
from tests.django_shop.models import Order


class ReturnView(CheckoutMixin, View):
    def get(self, request: HttpRequest, pk: int) -> HttpResponse:
        return self.come_back(Order.objects.get(pk=pk))

    def order_cleared(self, order: CountersignOrder) -> HttpResponse:
        return HttpResponse("<h1>Thank you</h1>")

    def order_not_cleared(self, order: CountersignOrder) -> HttpResponse:
        return HttpResponse(f"<h1>{order.state}</h1>")


urlpatterns = [
    path("countersign/", include("countersign_django.urls")),
    path("admin/", admin.site.urls),
    path("back/<int:pk>/", ReturnView.as_view()),
]
