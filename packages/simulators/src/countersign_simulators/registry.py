"""The simulated providers, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from countersign_simulators.base import Clock, Simulator
from countersign_simulators.didit import Didit
from countersign_simulators.onfido import Onfido
from countersign_simulators.persona import Persona
from countersign_simulators.plaid import Plaid
from countersign_simulators.stripe import Stripe
from countersign_simulators.veriff import Veriff

SIMULATORS: Final[Mapping[str, Callable[[Clock], Simulator]]] = {
    "stripe": Stripe,
    "persona": Persona,
    "veriff": Veriff,
    "plaid": Plaid,
    "didit": Didit,
    "onfido": Onfido,
}
