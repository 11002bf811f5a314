"""Evidence in the admin: read, and downloaded with the server's key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from countersign_client import CountersignError
from countersign_django import orders
from countersign_django.conf import client
from countersign_django.models import CountersignOrder, ReceivedEvent

WAIT_SECONDS: Final = 5
FIELDS: Final = (
    "state",
    "reasons",
    "obligations",
    "product_class",
    "shipping_zip",
    "checkout_session_id",
    "session_status",
    "ack_id",
    "cbid",
    "clearance_id",
    "cleared",
    "manual_override",
    "cleared_until",
    "shipped_at",
    "closed_at",
    "evidence",
)


class EvidenceAdmin(admin.ModelAdmin):
    """For the model of your orders: Countersign's results cannot be edited here."""

    list_display: Sequence[str] = ("order_reference", "state", "reasons", "cleared_until")
    list_filter: Sequence[str] = ("session_status", "cleared")
    actions: Sequence[str] = ("ask_again",)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        return (*super().get_readonly_fields(request, obj), *FIELDS)

    @admin.action(description="Ask Countersign again", permissions=("change",))
    def ask_again(self, request: HttpRequest, chosen: QuerySet[CountersignOrder]) -> None:
        """Such as after a manual override, which no event tells."""
        for order in chosen:
            try:
                orders.refresh(order)
                said = f"{orders.decide(order)} {order.manual_override}"
                messages.info(request, f"{order.order_reference()}: {said}")
            except CountersignError as error:
                messages.error(request, f"{order.order_reference()}: {error.message}")

    @admin.display(description="evidence")
    def evidence(self, order: CountersignOrder) -> SafeString | str:
        """Links to the downloads."""
        if not order.is_own:
            return "-"
        kinds = ["dossier"] if order.ack_id or order.clearance_id else []
        kinds += ["certificate"] if order.ack_id else []
        links = [(reverse(self._name, args=(order.pk, kind)), kind) for kind in kinds]
        return format_html_join(" · ", '<a href="{}">{}</a>', links) or "-"

    def get_urls(self) -> list[Any]:
        own = path(
            "<path:object_id>/countersign/<str:kind>/",
            self.admin_site.admin_view(self.download),
            name=self._name.removeprefix("admin:"),
        )
        return [own, *super().get_urls()]

    @property
    def _name(self) -> str:
        meta = self.model._meta  # noqa: SLF001 - Django's public API, by this name
        return f"admin:{meta.app_label}_{meta.model_name}_countersign"

    def download(self, request: HttpRequest, object_id: str, kind: str) -> HttpResponse:
        """A file of the evidence, for people who may view the order."""
        order = self.get_object(request, object_id)
        if not self.has_view_permission(request, order):
            raise PermissionDenied
        if order is None or not order.is_own:
            raise Http404
        try:
            if kind == "certificate" and order.ack_id:
                made = client().acknowledgments.certificate(order.ack_id, wait_seconds=WAIT_SECONDS)
            elif kind == "dossier" and order.clearance_id:
                made = client().clearances.dossier(order.clearance_id, wait_seconds=WAIT_SECONDS)
            elif kind == "dossier" and order.ack_id:
                made = client().acknowledgments.dossier(order.ack_id, wait_seconds=WAIT_SECONDS)
            else:
                raise Http404
        except CountersignError as error:
            messages.error(request, f"Countersign: {error.message}")
            meta = self.model._meta  # noqa: SLF001 - as above
            return redirect(f"admin:{meta.app_label}_{meta.model_name}_change", order.pk)
        ending = "pdf" if kind == "certificate" else "zip"
        about = (kind == "dossier" and order.clearance_id) or order.ack_id
        name = f"{about}-{kind}.{ending}"
        return HttpResponse(
            made,
            content_type=f"application/{ending}",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


@admin.register(ReceivedEvent)
class ReceivedEventAdmin(admin.ModelAdmin):
    list_display: ClassVar = ("id", "type", "created_at", "received_at")
    list_filter: ClassVar = ("type",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
