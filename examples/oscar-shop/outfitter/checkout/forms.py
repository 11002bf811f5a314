"""The address form: an order's needs depend on state and ZIP code, in the form of the post."""

from __future__ import annotations

from typing import Any

from django import forms
from oscar.apps.checkout import forms as oscar

from countersign_django.orders import CannotSell, place_of


class ShippingAddressForm(oscar.ShippingAddressForm):
    def clean(self) -> dict[str, Any]:
        """Read what was typed otherwise, such as `941051234`; show what is no address."""
        typed: dict[str, Any] = super().clean()
        country = getattr(typed.get("country"), "pk", "US")
        try:
            typed["state"], typed["postcode"] = place_of(
                typed.get("state", ""), typed.get("postcode", ""), country
            )
        except CannotSell as error:
            raise forms.ValidationError(str(error)) from error
        return typed
