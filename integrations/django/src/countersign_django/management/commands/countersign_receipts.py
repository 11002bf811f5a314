"""Collect the receipts of all orders, for `countersign log monitor --receipts`: once a day."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from countersign_django.models import CountersignOrder

_ID: Final = re.compile(r"ack_[0-9a-z]+\Z")


class Command(BaseCommand):
    help = "Write the receipt of each acknowledgment into a directory, one file each."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, help="is made if it does not exist")

    def handle(self, *, directory: Path, **_: object) -> None:
        new = 0
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for model in apps.get_models():
                if issubclass(model, CountersignOrder):
                    rows = model._base_manager.exclude(receipt="")  # noqa: SLF001 - all orders
                    for ack_id, receipt in rows.values_list("ack_id", "receipt"):
                        new += _write(directory, ack_id, receipt)
        except OSError as error:
            raise CommandError(f"The receipts could not be written: {error}") from error
        self.stdout.write(f"{new} receipts were new.")


def _write(directory: Path, ack_id: str, receipt: str) -> bool:
    """Write it, unless it is there; a monitor never sees a half of it."""
    file = directory / f"{ack_id}.txt"
    if not _ID.match(ack_id) or file.exists():
        return False
    # The monitor reads each file of the directory, so a draft is written next to it.
    unfinished = directory.parent / f".{directory.name}.{file.name}"
    unfinished.write_text(receipt, encoding="utf-8", newline="")
    unfinished.replace(file)
    return True
