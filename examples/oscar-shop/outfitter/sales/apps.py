"""Sales with a notice: orders, their payment and their dispatch."""

from __future__ import annotations

from django.apps import AppConfig


class SalesConfig(AppConfig):
    name = "outfitter.sales"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect what follows the state of an order."""
        from outfitter.sales import selling  # noqa: F401, PLC0415 - its receiver is connected
