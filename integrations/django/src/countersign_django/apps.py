"""The app: add `countersign_django` to INSTALLED_APPS."""

from __future__ import annotations

from django.apps import AppConfig


class CountersignConfig(AppConfig):
    name = "countersign_django"
    verbose_name = "Countersign"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from countersign_django import checks  # noqa: F401, PLC0415 - they register themselves
