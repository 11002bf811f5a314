"""The schema that servers expect, and the hashes of the migrations. `make schema` writes both.

python -m tests.storage.schema_files

The schema is the result of the migrations on each engine. A listed hash is never changed here: a
landed migration stays as it is.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Final

from sqlalchemy import make_url

from countersign.base.db import schema
from countersign.base.db.engine import Purpose, database_url
from tests.support import postgres

HASHES: Final = Path(__file__).with_name("revisions.sha256")
REVISIONS: Final = Path(schema.__file__).parent / "migrations" / "versions"


def hashes() -> dict[str, str]:
    """The SHA-256 of each file that belongs to a revision."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(REVISIONS.glob("[0-9]*"))
    }


def listed() -> dict[str, str]:
    """The SHA-256 that each of them has to have."""
    lines = HASHES.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def main() -> None:
    """Write the result of the migrations, then the hash of each file that is not listed yet."""
    with tempfile.TemporaryDirectory() as folder, postgres.running_postgres() as server:
        for url in (database_url(None, Path(folder)), make_url(postgres.fresh_database(server))):
            with schema.connected(url, Purpose.WRITE) as connection, connection.begin():
                schema.migrate(connection)
                schema.write(connection)
    lines = [f"{digest}  {name}\n" for name, digest in sorted((hashes() | listed()).items())]
    HASHES.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
