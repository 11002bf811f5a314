"""The fields of an order, and the events that were received."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import models


class State(StrEnum):
    """Where an order is. Only `CLEARED`, `OVERRIDDEN` and `NOT_NEEDED` are a yes."""

    NONE = "none"
    """Nothing was begun, or it was about another address or class."""
    OPEN = "open"
    """It waits for the buyer."""
    CLEARED = "cleared"
    OVERRIDDEN = "overridden"
    """It is not cleared, and has a manual override: it ships on the shop's own responsibility."""
    REFUSED = "refused"
    """It is not cleared: `reasons` says why."""
    UNDECIDED = "undecided"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    NOT_NEEDED = "not_needed"
    """Nothing is needed, see `countersign_django.following.follow`: also a yes."""


class CountersignOrder(models.Model):
    """Countersign's data about an order: for the order's own model, or one related to it.

    Only `countersign_django.orders` changes these fields: `save()` without `update_fields` leaves
    them as they are in the database, where a webhook may have changed them meanwhile.
    """

    bound_to = models.CharField(max_length=200, blank=True, db_index=True, editable=False)
    """The order that all of this is about, by model and primary key: a copy has another one."""
    reference = models.CharField(max_length=40, blank=True, db_index=True, editable=False)
    """Random name of the order at Countersign; a token's digest must not reveal the order."""
    product_class = models.CharField(max_length=255, blank=True)
    """The class of what is sold; several with commas between."""
    shipping_zip = models.CharField(max_length=10, blank=True)
    checkout_session_id = models.CharField(max_length=64, blank=True, db_index=True)
    session_status = models.CharField(max_length=16, blank=True)
    notice_url = models.CharField(max_length=500, blank=True, editable=False)
    """The buyer's link while the session is open. It is a secret of buyer and shop."""
    client_token = models.CharField(max_length=200, blank=True, editable=False)
    """The token for the component, while the session is open."""
    ack_id = models.CharField("acknowledgment", max_length=64, blank=True, db_index=True)
    receipt = models.TextField(blank=True, editable=False)
    cbid = models.CharField("buyer", max_length=64, blank=True, db_index=True)
    clearance_id = models.CharField("clearance", max_length=64, blank=True, db_index=True)
    cleared = models.BooleanField(null=True, blank=True)
    reasons = models.JSONField(default=list, blank=True)
    """Why the order is not cleared: codes, in the order of the documentation."""
    override_id = models.CharField("override", max_length=64, blank=True)
    """The manual override of the refusal. There is no token, and no fulfilment is reported."""
    obligations = models.JSONField(default=list, blank=True)
    """The obligations for the parcel."""
    clearance_token = models.TextField(blank=True, editable=False)
    """For the packing slip: a warehouse checks it offline."""
    cleared_until = models.DateTimeField(null=True, blank=True)
    shipped_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    """When everything that the order requires had been reported."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's own
        """Save the other fields; a stale `session_status` would have an order paid twice.

        A new row begins with none of these values, even if it is a copy of another order.
        """
        chosen = args or kwargs.get("force_insert") or kwargs.get("update_fields") is not None
        if self._state.adding or self.pk is None:
            for name, value in nothing().items():
                setattr(self, name, value)
        elif not chosen:
            kept = {*nothing()}
            kept |= self.get_deferred_fields()
            fields = self._meta.concrete_fields
            kwargs["update_fields"] = [
                field.name
                for field in fields
                if not (field.primary_key or field.name in kept or field.attname in kept)
            ]
        super().save(*args, **kwargs)

    def order_reference(self) -> str:
        """The order's reference at the service, which compares it at each decision.

        By default the primary key. Override it to return the number that your staff use: of this
        order alone, the same for good, at most 64 characters, no name and no e-mail address.
        """
        return str(self.pk)

    def itself(self) -> str:
        """The expected value of `bound_to`."""
        # The model that has the column: others can inherit its rows.
        owner = self._meta.get_field("bound_to").model
        return f"{owner._meta.label_lower}:{self.pk}"  # noqa: SLF001 - Django's public API, by this name

    @property
    def is_own(self) -> bool:
        """Whether the stored data is about this order, and not copied from another one."""
        return self.bound_to == self.itself()

    @property
    def state(self) -> State:
        """Where the order is."""
        if not self.session_status or not self.is_own:
            return State.NONE
        if self.session_status != "completed":
            return State(self.session_status)
        if self.cleared is None:
            return State.UNDECIDED
        if self.cleared:
            return State.CLEARED
        return State.OVERRIDDEN if self.override_id else State.REFUSED

    @property
    def manual_override(self) -> str:
        """What staff and packers should read of an overridden order; else ""."""
        if self.state != State.OVERRIDDEN:
            return ""
        return f"Manual override {self.override_id}: shipped on your own responsibility"

    @property
    def labels(self) -> list[str]:
        """The words to print on the parcel, each as it stands."""
        obligations: list[dict[str, Any]] = self.obligations
        return [one["text"] for one in obligations if one["type"] == "package_label"]

    @property
    def needs_adult_signature(self) -> bool:
        """Whether the parcel may be handed only to an adult who signs."""
        return any(one["type"] == "adult_signature" for one in self.obligations)


def nothing() -> dict[str, Any]:
    """The fields of an order that was not begun, by name."""
    fields = CountersignOrder._meta.local_fields  # noqa: SLF001 - Django's public API, by this name
    return {field.name: field.get_default() for field in fields}


class ReceivedEvent(models.Model):
    """An event that was processed: the same one can come more than once."""

    id = models.CharField(max_length=64, primary_key=True)
    type = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    received_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ("-received_at",)

    def __str__(self) -> str:
        return f"{self.type} {self.id}"
