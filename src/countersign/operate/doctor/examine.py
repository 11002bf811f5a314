"""All checks, each a line of a table: a new one is a function, its name here, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct

from countersign.base.errors import CountersignError
from countersign.operate.doctor import machine, service
from countersign.operate.doctor.machine import (
    damage,
    database,
    of_postgresql,
    rights,
    schema,
    sessions,
)
from countersign.operate.doctor.promises import promises
from countersign.operate.doctor.sight import (
    EXIT,
    Check,
    Diagnosis,
    Severity,
    Sight,
    UnseenError,
    say,
    together,
)

CHECKS: Final[Mapping[str, Check[Sight]]] = {
    "settings": machine.settings,
    "data_directory": machine.data_directory,
    "disk": machine.disk,
    "key_files": machine.key_files,
    "limits": machine.limits,
    "server": machine.server,
    "public_address": service.public_address,
    "database": database,
    "schema": schema,
    "rights": rights,
    "durability": partial(of_postgresql, "durability"),
    "sessions": sessions,
    "transactions": partial(of_postgresql, "transactions"),
    "sequences": partial(of_postgresql, "sequences"),
    "damage": damage,
    "keys": service.keys,
    "clock": service.clock,
    "logs": service.logs,
    "log_keys": service.log_keys,
    "witnesses": service.witnesses,
    "providers": service.providers,
    "webhooks": service.webhooks,
    "mails": service.mails,
    "notices": service.notices,
    "promises": promises,
}
"""In the order of the output."""


class FoundByDoctor(Struct, frozen=True, kw_only=True):
    """What a check has found."""

    check: Annotated[str, Meta(examples=["promises"])]
    code: Annotated[str, Meta(examples=["promises.backed_up"])]
    severity: Annotated[Severity, Meta(examples=[Severity.WARNING])]
    found: Annotated[str, Meta(examples=["the last backup is 50 hours old"])]
    what_to_do: Annotated[str, Meta(examples=["Make one."])]
    """"": nothing."""


def examine(look: Sight, checks: Mapping[str, Check[Sight]] = CHECKS) -> list[FoundByDoctor]:
    """The findings of all checks, in order. They work at the same time, in `look.seconds`."""
    found = together([partial(_found, check, look) for check in checks.values()], look.seconds)
    late = [say("check.late", seconds=look.seconds)]
    lines = [
        FoundByDoctor(check=name, **diagnosis._asdict())
        for name, diagnoses in zip(checks, found, strict=True)
        for diagnosis in (late if diagnoses is None else diagnoses)
    ]
    # Before `init` everything is missing. A misspelled setting can be the reason.
    is_new = any(line.code == "schema.new" for line in lines)
    return [line for line in lines if not is_new or line.check in {"settings", "schema"}]


def worst(lines: list[FoundByDoctor]) -> Severity:
    """How bad the whole is."""
    return max((line.severity for line in lines), key=EXIT.__getitem__)


def problems(lines: list[FoundByDoctor]) -> list[FoundByDoctor]:
    """Broken parts first, then those to fix before they break."""
    wrong = [line for line in lines if EXIT[line.severity]]
    return sorted(wrong, key=lambda line: -EXIT[line.severity])


def _found(check: Check[Sight], look: Sight) -> list[Diagnosis]:
    """The problems that a check finds, otherwise its good results; an exception is a problem."""
    found: list[Diagnosis] = []
    try:
        found.extend(check(look))
    except UnseenError as error:
        found.append(say("check.unseen", why=error))
    except CountersignError as error:
        found.append(say("check.refused", why=error.message, code=error.code))
    except Exception as error:  # noqa: BLE001 - a check must not hide what the others find
        found.append(say("check.failed", why=f"{type(error).__name__}: {str(error)[:200]}"))
    # What a check finds of each log may have one cause.
    return [*dict.fromkeys(one for one in found if EXIT[one.severity])] or found[:1]
