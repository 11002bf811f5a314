"""A pretended card gateway: here a real shop calls its own."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Final

logger: Final = logging.getLogger("outfitter.gateway")


def authorise(order_number: str, amount: Decimal) -> str:
    """Reserve an amount; returns the gateway's reference."""
    logger.info("authorise %s", amount)
    return f"card-{order_number}"


def capture(reference: str, amount: Decimal) -> None:
    logger.info("capture %s %s", reference, amount)


def refund(reference: str, amount: Decimal) -> None:
    logger.info("refund %s %s", reference, amount)


def void(reference: str) -> None:
    logger.info("void %s", reference)
