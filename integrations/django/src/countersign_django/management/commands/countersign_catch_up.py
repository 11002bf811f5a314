"""Process the events that no webhook brought, such as after an outage. Run it once a day."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta

from django.core.management.base import BaseCommand
from django.utils import timezone

from countersign_django.conf import client
from countersign_django.receiving import receive


class Command(BaseCommand):
    help = "Process the events that no webhook brought."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--hours", type=int, default=48, help="how far back to look")

    def handle(self, **options: int) -> None:
        since = timezone.now() - timedelta(hours=options["hours"])
        new = sum(receive(event) for event in client().events.list(since=since))
        self.stdout.write(f"{new} events were missing.")
