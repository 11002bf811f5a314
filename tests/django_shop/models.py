"""The order of a shop that uses the app."""

from __future__ import annotations

from typing import Any

from django.db import models

from countersign_django.models import CountersignOrder


class Order(CountersignOrder):
    """An order that counts how often its payment was captured, and given up."""

    captured = models.IntegerField(default=0)
    voided = models.IntegerField(default=0)
    # Fails as a gateway does.
    gateway_works = models.BooleanField(default=True)

    number = models.CharField(max_length=20, default="")

    class Meta:
        app_label = "django_shop"

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        """Remember how it was, as orders of many shops do."""
        super().__init__(*args, **kwargs)
        self.was = (self.captured, self.voided)

    def order_reference(self) -> str:
        """Its number, if it has one; with the number `-` nothing, as before it had a default."""
        return "" if self.number == "-" else str(self.number) or super().order_reference()
