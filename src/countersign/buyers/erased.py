"""The keyed hashes by which erased buyers are remembered, among the values of the deployment."""

from __future__ import annotations

from typing import Final

from countersign.access.secrets import DeploymentSecret

ERASED_BUYER: Final = "erased:"
"""Beginning of the names of deployment values that say: the buyer of this keyed hash was erased."""
_SCOPE: Final = "erased buyers"


def erased_name(secret: DeploymentSecret, cbid: str) -> str:
    """The name of the deployment value that says that the buyer was erased."""
    return ERASED_BUYER + secret.blind_index(_SCOPE, "cbid", cbid).hex()
