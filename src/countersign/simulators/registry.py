"""The simulated providers that there are, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from countersign.simulators import didit, onfido, persona, plaid, stripe, veriff
from countersign.simulators.protocol import SimulatorFactory

SIMULATORS: Final[Mapping[str, SimulatorFactory]] = {
    "stripe": stripe.make,
    "persona": persona.make,
    "veriff": veriff.make,
    "plaid": plaid.make,
    "didit": didit.make,
    "onfido": onfido.make,
}
