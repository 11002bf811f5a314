"""The address of the webhook: `path("countersign/", include("countersign_django.urls"))`."""

from __future__ import annotations

from typing import Final

from django.urls import path

from countersign_django.views import webhook

app_name: Final = "countersign"
urlpatterns: Final = [path("webhook/", webhook, name="webhook")]
