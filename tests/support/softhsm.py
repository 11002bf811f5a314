"""SoftHSM 2, which plays a hardware security module: a PKCS#11 token in a folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Final

PIN: Final = "271828"
_FOLDERS: Final = (
    "/usr/lib/softhsm",
    "/usr/lib/x86_64-linux-gnu/softhsm",
    "/usr/lib/aarch64-linux-gnu/softhsm",
    "/usr/lib64/pkcs11",
    "/usr/local/lib/softhsm",
    "/opt/homebrew/lib/softhsm",
)


def find_module() -> Path | None:
    """The PKCS#11 library of the SoftHSM that is installed."""
    candidates = (Path(folder) / "libsofthsm2.so" for folder in _FOLDERS)
    return next((path for path in candidates if path.exists()), None)


def make_token(folder: Path) -> tuple[Mapping[str, str], str]:
    """Make a token in a folder: the settings that name it, and the value of SOFTHSM2_CONF.

    Its label is unique: a module loaded with another folder does not know it, so it is loaded
    again.
    """
    tokens, label = folder / "tokens", f"token-{token_hex(4)}"
    tokens.mkdir(parents=True, exist_ok=True)
    configuration = folder / "softhsm2.conf"
    configuration.write_text(
        f"directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n"
    )
    pin_file = folder / "pin"
    pin_file.write_text(f"{PIN}\n")
    pin_file.chmod(0o600)
    subprocess.run(
        ["softhsm2-util", "--init-token", "--free", "--label", label, "--pin", PIN,
         "--so-pin", "314159"],
        check=True,
        capture_output=True,
        env={**os.environ, "SOFTHSM2_CONF": str(configuration)},
    )  # fmt: skip
    settings = {
        "PKCS11_MODULE": str(find_module()),
        "PKCS11_TOKEN": label,
        "PKCS11_PIN_FILE": str(pin_file),
    }
    return settings, str(configuration)
