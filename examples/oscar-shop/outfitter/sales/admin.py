"""The evidence of orders, in the admin."""

from __future__ import annotations

from django.contrib import admin

from countersign_django.admin import EvidenceAdmin
from outfitter.sales.models import Purchase


@admin.register(Purchase)
class PurchaseAdmin(EvidenceAdmin):
    list_display = ("order", "ack_id", "clearance_id", "cleared")
    readonly_fields = ("order",)
