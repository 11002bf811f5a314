"""Process the events that no webhook brought, such as after an outage. Run it once a day."""

from __future__ import annotations

import logging
from argparse import ArgumentParser
from datetime import timedelta
from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from countersign_client import CountersignError
from countersign_django.conf import client
from countersign_django.receiving import receive, take_over

logger: Final = logging.getLogger("countersign_django")


class Command(BaseCommand):
    help = "Process the events that no webhook brought."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--hours", type=int, default=48, help="how far back to look")

    def handle(self, **options: int) -> None:
        since = timezone.now() - timedelta(hours=options["hours"])
        new, failed = 0, []
        try:
            take_over()
            for event in client().events.list(since=since):
                try:
                    new += receive(event)
                except Exception:
                    # If the payment of one order fails, the others go on.
                    logger.exception("The event %s could not be processed.", event.id)
                    failed.append(event.id)
        except (CountersignError, ImproperlyConfigured) as error:
            raise CommandError(f"The events could not be read: {error}") from error
        self.stdout.write(f"{new} events were missing.")
        if failed:
            raise CommandError(f"{len(failed)} could not be processed: {', '.join(failed)}")
