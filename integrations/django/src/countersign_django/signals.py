"""Signals for a shop. Receivers run inside the transaction that stores the change."""

from __future__ import annotations

from typing import Final

from django.dispatch import Signal

order_changed: Final = Signal()
"""An order has another state. `sender`: its model; `order`: as it is now; `before`: a State."""

event_received: Final = Signal()
"""A webhook brought an event, once for each event. `event`: its `id`, `type`, `data`."""
