"""The admin of the project."""

from __future__ import annotations

from django.contrib import admin

from countersign_django.admin import EvidenceAdmin
from tests.django_shop.models import Order

admin.site.register(Order, EvidenceAdmin)
