"""The fork of Oscar's checkout: what is not in this folder is Oscar's."""

from __future__ import annotations

from oscar.apps.checkout import apps


class CheckoutConfig(apps.CheckoutConfig):
    name = "outfitter.checkout"
