"""Both ways to give a shop's order the fields, on the order of django-salesman."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from salesman.orders.models import BaseOrder

from countersign_django.models import CountersignOrder


class Purchase(CountersignOrder, BaseOrder):
    """A base of the shop's order, in the place of salesman's own model."""

    class Meta(BaseOrder.Meta):
        app_label = "salesman_shop"


class Check(CountersignOrder):
    """A model of its own: the shop's order stays as it is."""

    order = models.OneToOneField(settings.SALESMAN_ORDER_MODEL, models.CASCADE, related_name="+")

    class Meta:
        app_label = "salesman_shop"
