"""`countersign serve`, whose worker freezes at SIGUSR1 in a loop that blocks everything else.

Its parent loses patience after FROZEN_SECONDS instead of ten.
"""

from __future__ import annotations

import os
import signal

from countersign.root import main
from countersign.server import workers


def spin_in_place(_number: int, _frame: object) -> None:
    """Do nothing, without an end."""
    while True:
        pass


if __name__ == "__main__":
    patience = os.environ.get("FROZEN_SECONDS")
    if patience:
        setattr(workers, "_FROZEN_SECONDS", float(patience))  # noqa: B010 - it is Final
        setattr(workers, "_TICK_SECONDS", float(patience) / 10)  # noqa: B010 - as well
    signal.signal(signal.SIGUSR1, spin_in_place)
    main(["serve"])
