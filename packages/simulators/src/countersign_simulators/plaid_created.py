"""Identity verifications that are created over the API of the simulated Plaid.

Written from Plaid's published description of `/identity_verification/create` and `…/retry`, API
version 2020-09-14. A buyer at a `shareable_url` is not led back. Hosted Link is not simulated: it
"will not redirect to the `completion_redirect_uri`" with Identity Verification (Plaid's page
"Hosted Link").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from countersign_simulators.base import Request
from countersign_simulators.hosted import Created, Hosted, unguessable

TEMPLATE_ID: Final = "idvtmp_SimulatedTemplate"
_LANGUAGES: Final = ("en-US", "es-ES", "es-US", "fr-CA", "ja-JP", "pt-BR", "pt-PT")
_TEXT: Final = (str,)
_AUTHENTICATION: Final = {"client_id": _TEXT, "secret": _TEXT}
_CREATE: Final[Mapping[str, tuple[type, ...]]] = {
    **_AUTHENTICATION,
    "is_shareable": (bool,),
    "template_id": _TEXT,
    "gave_consent": (bool,),
    "client_user_id": _TEXT,
    "user_id": _TEXT,
    "language": _TEXT,
    "user": (dict,),
    "is_idempotent": (bool, type(None)),
}
_RETRY: Final[Mapping[str, tuple[type, ...]]] = {
    **_AUTHENTICATION,
    **dict.fromkeys(("client_user_id", "user_id", "template_id", "strategy"), _TEXT),
    "user": (dict,),
    "steps": (dict,),
    "is_shareable": (bool, type(None)),
}
_STRATEGIES: Final = ("reset", "incomplete", "infer", "custom")
_STEPS: Final = ("verify_sms", "kyc_check", "documentary_verification", "selfie_check")
_USER: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("email_address", "date_of_birth"), _TEXT),
    **dict.fromkeys(("phone_number", "client_user_id", "ip_address"), (str, type(None))),
    **dict.fromkeys(("name", "address", "id_number"), (dict,)),
}


class Invalid(Exception):
    """A request that does not fit the description; `code` is Plaid's."""

    def __init__(self, message: str, code: str = "INVALID_FIELD") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Creations:
    """Creates and finds sessions."""

    hosted: Hosted

    def create(self, asked: Mapping[str, Any], environment: str, request: Request) -> Created:
        """A new verification, or the existing one of an idempotent creation.

        Raises:
            Invalid: a member is unknown, missing or invalid, or the user has one already.
        """
        _check(asked, _CREATE, needed=("is_shareable", "template_id"))
        _check_template(asked["template_id"])
        if asked.get("language", _LANGUAGES[0]) not in _LANGUAGES:
            raise Invalid("language must be one of the supported languages")
        user = _check(asked.get("user", {}), _USER)
        client_user_id = asked.get("client_user_id") or user.get("client_user_id")
        if not client_user_id:
            raise Invalid("client_user_id, user_id", "MISSING_FIELDS")
        known = self._of_user(client_user_id, environment)
        if known is not None and asked.get("is_idempotent") is not True:
            raise Invalid("an Identity Verification already exists for this client_user_id")
        return known or self._make(
            client_user_id, environment, request, is_shareable=asked["is_shareable"]
        )

    def retry(self, asked: Mapping[str, Any], environment: str, request: Request) -> Created:
        """Another verification of a user who has one; every strategy starts without data.

        Raises:
            Invalid: a member is unknown, missing or invalid, or the user has no verification.
        """
        _check(asked, _RETRY, needed=("client_user_id", "template_id", "strategy"))
        _check_template(asked["template_id"])
        strategy, steps = asked["strategy"], asked.get("steps")
        if strategy not in _STRATEGIES:
            raise Invalid("strategy must be one of the supported strategies")
        if (strategy == "custom") is not (steps is not None):
            raise Invalid("steps must be given with the strategy custom, and with no other")
        _check(asked.get("user", {}), _USER)
        _check(steps or {}, dict.fromkeys(_STEPS, (bool,)), needed=_STEPS if steps else ())
        before = self._of_user(asked["client_user_id"], environment)
        if before is None:
            raise Invalid("client_user_id has no Identity Verification to retry")
        return self._make(
            asked["client_user_id"],
            environment,
            request,
            is_shareable=asked.get("is_shareable") is True,
            previous=before.session_id,
        )

    def _of_user(self, client_user_id: str, environment: str) -> Created | None:
        """The newest verification of a user."""
        return next(
            (
                one
                for one in self.hosted.all()
                if (one.reference, one.made["environment"]) == (client_user_id, environment)
            ),
            None,
        )

    def _make(
        self,
        client_user_id: str,
        environment: str,
        request: Request,
        *,
        is_shareable: bool,
        previous: str | None = None,
    ) -> Created:
        own_id = f"idv_{unguessable(14)}"
        page = f"/verify/{own_id}?key={unguessable(64)}"
        shareable_url = request.origin + page if is_shareable else None
        made = {
            "environment": environment,
            "shareable_url": shareable_url,
            "previous_attempt_id": previous,
        }
        return self.hosted.create(own_id, page, reference=client_user_id, made=made)


def _check_template(template_id: str) -> None:
    if template_id != TEMPLATE_ID:
        raise Invalid("template_id could not be found")


def _check(
    value: Any,  # noqa: ANN401 - any JSON
    members: Mapping[str, tuple[type, ...]],
    *,
    needed: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The object, if it has all that are needed, and only these members of these types."""
    if not isinstance(value, dict):
        raise Invalid("must be an object")
    missing = [name for name in needed if name not in value]
    if missing:
        raise Invalid(", ".join(missing), "MISSING_FIELDS")
    for name, member in value.items():
        if name not in members:
            raise Invalid(name, "UNKNOWN_FIELDS")
        wanted = members[name]
        if not isinstance(member, wanted) or (isinstance(member, bool) and bool not in wanted):
            raise Invalid(f"{name} has the wrong type")
    return value
