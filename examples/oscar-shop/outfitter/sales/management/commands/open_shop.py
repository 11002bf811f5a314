"""Make the tables, the products and the first users of the shop, and serve it."""

from __future__ import annotations

import os
import re
import signal
from argparse import ArgumentParser
from decimal import Decimal
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from oscar.apps.address.models import Country
from oscar.apps.catalogue.models import Category, Product, ProductAttribute, ProductClass
from oscar.apps.partner.models import Partner, StockRecord

PRODUCTS = (
    ("handguard", "Free-float handguard, 15 inch", "129.00", "accessory"),
    ("mill", "Desktop CNC mill", "2450.00", "manufacturing_machine"),
    ("barrel", "Barrel, 16 inch", "189.00", "barrel"),
    ("apron", "Workshop apron", "48.00", ""),
)
EVERYONES = "sandbox"
"""The password that everyone knows: of a shop with a test key."""


class Command(BaseCommand):
    help = "Make the tables, the products and the first users unless they are there, and serve."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", default=os.environ.get("SHOP_PORT", "8000"))
        parser.add_argument("--without-migrations", action="store_true", help="quicker, for tests")

    def handle(self, *, port: str, without_migrations: bool, **_: object) -> None:
        chosen = os.environ.get("SHOP_PASSWORD", "")
        if not chosen and not re.match("csign_[a-z]+_test_", settings.COUNTERSIGN["API_KEY"]):
            raise CommandError(
                "Set SHOP_PASSWORD: with a live key, staff have no password that everyone knows."
            )
        Path(settings.DATABASES["default"]["NAME"]).parent.mkdir(parents=True, exist_ok=True)
        self.stdout.write("The tables are made, if they are missing.")
        if without_migrations:
            settings.MIGRATION_MODULES = dict.fromkeys(
                config.label for config in apps.get_app_configs()
            )
        call_command("migrate", run_syncdb=True, verbosity=0)
        self.stdout.write("The shop is stocked, if it is empty.")
        if not Product.objects.exists():
            _stock()
        for name, staff in (("staff@example.com", True), ("jo@example.com", False)):
            user, is_new = User.objects.get_or_create(
                username=name,
                defaults={"email": name, "is_staff": staff, "is_superuser": staff},
            )
            # Users of a sandbox that goes live get the chosen one.
            if is_new or (chosen and user.check_password(EVERYONES)):
                user.set_password(chosen or EVERYONES)
                user.save()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.stdout.write(f"The shop opens: http://localhost:{port}")
        call_command("runserver", f"127.0.0.1:{port}", use_reloader=False)


def _stock() -> None:
    Country.objects.get_or_create(
        iso_3166_1_a2="US",
        defaults={"printable_name": "United States", "is_shipping_country": True},
    )
    kind = ProductClass.objects.create(name="Goods", requires_shipping=True, track_stock=True)
    # The attributes of a product for Countersign; staff set them in the dashboard.
    ProductAttribute.objects.create(
        product_class=kind, name="Class for notices", code="notice_class", type="text"
    )
    partner = Partner.objects.create(name="Ridgeline")
    everything = Category.add_root(name="Workshop")
    for slug, title, price, notice_class in PRODUCTS:
        product = Product(product_class=kind, title=title, slug=slug, upc=slug)
        product.attr.notice_class = notice_class or None
        product.save()
        product.categories.add(everything)
        StockRecord.objects.create(
            product=product,
            partner=partner,
            partner_sku=slug,
            price=Decimal(price),
            price_currency="USD",
            num_in_stock=1000,
        )
