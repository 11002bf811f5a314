"""The address form: an order's needs depend on the state, by its code."""

from __future__ import annotations

from django import forms
from oscar.apps.checkout import forms as oscar


class ShippingAddressForm(oscar.ShippingAddressForm):
    state = forms.RegexField("^[A-Z]{2}$", label="State (two capital letters)")
    postcode = forms.RegexField("^[0-9]{5}(-[0-9]{4})?$", label="ZIP code")
