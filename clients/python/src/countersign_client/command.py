"""`csign`, if the extra `cli` is installed."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from countersign_client.cli import csign  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("csign needs: pip install 'countersign-client[cli]'")
    csign()
