"""Keys on a PKCS#11 token, such as a hardware security module: they sign there and never leave it.

One thread of the process calls the token's module, and each call has a deadline. A token that does
not respond so holds up nothing but sealing: acts are accepted, and their records wait.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from countersign.base.config import Settings
from countersign.base.errors import InvalidConfiguration, TokenUnavailable
from countersign.base.generics import T
from countersign_evidence.note import ED25519, Signer, Verifier

CALL_SECONDS: Final = 5.0
"""Deadline of a call; its work waits afterwards."""
MAKE_SECONDS: Final = 60.0
_ED25519_PARAMETERS: Final = bytes.fromhex("130c656477617264733235353139")
"""The name edwards25519 as a DER PrintableString (PKCS#11 3.0, section 2.3.10)."""
_POINT_BYTES: Final = 32


@dataclass(eq=False, repr=False)
class Token:
    """The token of the deployment. The token is opened at the first use."""

    module: Path
    """The library of the token's maker."""
    label: str
    """The token's name in it."""
    pin_file: Path
    seconds: float = CALL_SECONDS
    """How long a signature may take."""
    _calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = field(default_factory=SimpleQueue)
    _thread: Thread | None = None
    _late: Future[Any] | None = None
    _session: Any = None
    _keys: dict[bytes, Any] = field(default_factory=dict)
    _refused: TokenUnavailable | None = None

    def make(self, name: str, key_id: bytes) -> Verifier:
        """Make an Ed25519 key on the token, which goes by this id there; its public half."""
        return Verifier(name, ED25519, self._call(partial(self._make, name, key_id), MAKE_SECONDS))

    def signer(self, verifier: Verifier, key_id: bytes) -> Signer:
        """The signer by a key of the token. It raises TokenUnavailable if the token does not sign.

        Whether the token has the key is seen when it signs.
        """
        return Signer(verifier, partial(self._signature, key_id))

    def _signature(self, key_id: bytes, message: bytes) -> bytes:
        return self._call(partial(self._sign, key_id, message), self.seconds)

    def _call(self, act: Callable[[], T], seconds: float) -> T:
        if self._late is not None and not self._late.done():
            raise TokenUnavailable(f"The token {self.label} does not respond.")
        if self._thread is None:
            self._thread = Thread(target=self._work, name="pkcs11", daemon=True)
            self._thread.start()
        result: Future[T] = Future()
        self._calls.put((act, result))
        try:
            return result.result(seconds)
        except TimeoutError:
            self._late = result
            raise TokenUnavailable(
                f"The token {self.label} did not respond within {seconds:g} seconds."
            ) from None

    def _work(self) -> None:
        while True:
            act, result = self._calls.get()
            try:
                result.set_result(self._with_session(act))
            except Exception as error:  # noqa: BLE001 - the caller that waits gets it
                result.set_exception(self._unavailable(error))

    def _with_session(self, act: Callable[[], T]) -> T:
        """Run an act; where that fails in a new session too, with the module begun again.

        Sessions end, and after a restart of the token many modules need a new beginning.
        """
        if self._refused is not None:
            raise self._refused
        if self._session is not None:
            with suppress(Exception):  # a lasting error is raised below
                return act()
        try:
            self._open()
            return act()
        except TokenUnavailable:
            raise
        except Exception:  # noqa: BLE001 - modules fail in many ways
            self._open(again=True)
            return act()

    def _open(self, *, again: bool = False) -> None:
        import pkcs11  # noqa: PLC0415 - an optional package
        from pkcs11.exceptions import PinIncorrect, PinLocked, UserAlreadyLoggedIn  # noqa: PLC0415

        if self._session is not None:
            with suppress(Exception):
                self._session.close()
            self._session = None
        self._keys.clear()
        pin = self.pin_file.read_text(encoding="utf-8").strip()
        library = pkcs11.lib(str(self.module))
        if again:
            library.reinitialize()
        token = library.get_token(token_label=self.label)
        try:
            self._session = token.open(rw=True, user_pin=pin)
        except UserAlreadyLoggedIn:  # the login is the process's, not the session's
            self._session = token.open(rw=True)
        except (PinIncorrect, PinLocked) as error:
            # Not again in this process: tokens lock after a few wrong attempts.
            self._refused = TokenUnavailable(
                f"The token {self.label} refused the PIN in {self.pin_file}. It is not tried "
                "again before a restart, since tokens lock after some wrong attempts."
            )
            raise self._refused from error

    def _make(self, name: str, key_id: bytes) -> bytes:
        from pkcs11 import Attribute, KeyType, Mechanism  # noqa: PLC0415

        parameters = self._session.create_domain_parameters(
            KeyType.EC_EDWARDS, {Attribute.EC_PARAMS: _ED25519_PARAMETERS}, local=True
        )
        public, _ = parameters.generate_keypair(
            mechanism=Mechanism.EC_EDWARDS_KEY_PAIR_GEN, id=key_id, label=name, store=True
        )
        # The point, in an OCTET STRING or bare: modules differ.
        return bytes(public[Attribute.EC_POINT][-_POINT_BYTES:])

    def _sign(self, key_id: bytes, message: bytes) -> bytes:
        from pkcs11 import Mechanism, ObjectClass  # noqa: PLC0415

        key = self._keys.get(key_id)
        if key is None:
            key = self._session.get_key(object_class=ObjectClass.PRIVATE_KEY, id=key_id)
            self._keys[key_id] = key
        return bytes(key.sign(message, mechanism=Mechanism.EDDSA))

    def _unavailable(self, error: Exception) -> TokenUnavailable:
        if isinstance(error, TokenUnavailable):
            return error
        detail = f"{type(error).__name__} {error}".strip()
        return TokenUnavailable(f"The token {self.label} cannot be used: {detail}.")


def configured_token(settings: Settings) -> Token | None:
    """The token that the settings name; None if they name none."""
    module, label, pin = settings.pkcs11_module, settings.pkcs11_token, settings.pkcs11_pin_file
    if module is None and label is None and pin is None:
        return None
    if module is None or label is None or pin is None:
        raise InvalidConfiguration(
            "COUNTERSIGN_PKCS11_MODULE, COUNTERSIGN_PKCS11_TOKEN and COUNTERSIGN_PKCS11_PIN_FILE "
            "go together: set all three, or none."
        )
    try:
        import pkcs11  # noqa: F401, PLC0415 - an optional package
    except ImportError:
        raise InvalidConfiguration(
            "COUNTERSIGN_PKCS11_MODULE needs the package python-pkcs11: "
            "pip install 'python-pkcs11>=0.9'."
        ) from None
    return Token(module, label, pin)
