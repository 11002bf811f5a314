"""The file of the deployment's secret key, and the check that it is the one of the database."""

from __future__ import annotations

from hmac import compare_digest
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from countersign.access.secrets import SECRET_BYTES, DeploymentSecret
from countersign.clock import Entropy
from countersign.db import schema
from countersign.errors import WrongSecretKey
from countersign.private_file import write_key_file

_VALUE: Final = "secret_check"


def make_secret(path: Path, url: URL, entropy: Entropy) -> None:
    """Make the secret key file of a new deployment, and check it.

    Raises:
        InvalidConfiguration: it cannot be written.
        WrongSecretKey: see `open_secret`.
    """
    if not path.exists() and not schema.has_value(url, _VALUE):
        write_key_file(path, DeploymentSecret.new_text(entropy(SECRET_BYTES)))
    open_secret(path, url)


def open_secret(path: Path, url: URL) -> DeploymentSecret:
    """The secret in this file, which is that of the database.

    Raises:
        WrongSecretKey: the file is missing or not readable, or the database has another secret.
    """
    secret = _read(path)
    kept = schema.stored_value(url, _VALUE, secret.check_value())
    if not compare_digest(secret.check_value(), kept):
        raise WrongSecretKey
    return secret


def _read(path: Path) -> DeploymentSecret:
    try:
        return DeploymentSecret.from_text(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        msg = (
            f"The secret key file {path} is missing. Restore it, or set "
            "COUNTERSIGN_SECRET_KEY_FILE to its path: without it no API key works."
        )
        raise WrongSecretKey(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The secret key file {path} cannot be read: {error}."
        raise WrongSecretKey(msg) from error
