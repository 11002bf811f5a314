"""The parts of the kit over an open deployment: for server processes, and for the command."""

from __future__ import annotations

from functools import partial
from typing import Final

from countersign.base.loops import forever
from countersign.base.values import Clock, from_ns
from countersign.operate.bootstrap import Deployment
from countersign.server.extension import Extension
from countersign_conformance.intercept import Interceptor
from countersign_conformance.model import KEPT
from countersign_conformance.probes import ProbeWebhooks
from countersign_conformance.run import RunConformance
from countersign_conformance.store import RunStore
from countersign_conformance.watch import WatchVendors

_TIDY_SECONDS: Final = 600.0
_TIDY_RUNS: Final = 5
"""At a time: each may have thousands of observations."""


def extension(deployment: Deployment) -> Extension:
    """The kit's part in a server process."""
    watch = watch_vendors(deployment)
    tidy = partial(delete_old_runs, RunStore(deployment.database), deployment.clock)
    return Extension(
        name="conformance",
        around=Interceptor(deployment, watch),
        run=partial(forever, "conformance", tidy, _TIDY_SECONDS),
    )


def watch_vendors(deployment: Deployment) -> WatchVendors:
    """Detects accounts with a run."""
    return WatchVendors(
        RunStore(deployment.database),
        deployment.access.secret,
        deployment.clock,
        deployment.access.entropy,
    )


def run_conformance(deployment: Deployment) -> RunConformance:
    """Conducts a run."""
    return RunConformance(
        RunStore(deployment.database),
        watch_vendors(deployment),
        ProbeWebhooks(deployment.webhooks),
        deployment.clock,
        deployment.access.entropy,
    )


async def delete_old_runs(store: RunStore, clock: Clock) -> None:
    """Delete the runs that ended a week ago, with their observations."""
    before = from_ns(clock.time_ns()) - KEPT
    while await store.delete(before, _TIDY_RUNS) == _TIDY_RUNS:
        pass
