"""The addresses of orders and of the dispatch."""

from __future__ import annotations

from django.urls import path

from outfitter.sales import views

app_name = "sales"
urlpatterns = [
    path("orders/<str:number>/", views.OrderView.as_view(), name="order"),
    path("dashboard/dispatch/", views.DispatchView.as_view(), name="dispatch"),
]
