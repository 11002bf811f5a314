"""The fork of Oscar's checkout: everything outside this folder is Oscar's."""

from __future__ import annotations

from oscar.apps.checkout import apps


class CheckoutConfig(apps.CheckoutConfig):
    name = "outfitter.checkout"
