"""Countersign's data about Oscar's orders and customers."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from countersign_django.models import CountersignOrder


class Purchase(CountersignOrder):
    """The part of an order that is about Countersign: Oscar's own model stays as it is."""

    order = models.OneToOneField("order.Order", models.CASCADE, related_name="purchase")

    def order_reference(self) -> str:
        """The number that staff and buyer see."""
        return str(self.order.number)

    def __str__(self) -> str:
        return f"{self.order.number}: {self.state}"


class KnownBuyer(models.Model):
    """The buyer identifier of a customer: the next order asks only for the initials."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE)
    cbid = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.cbid
