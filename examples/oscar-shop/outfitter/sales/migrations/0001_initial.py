"""The tables of purchases and known buyers, as `makemigrations` writes them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("order", "0021_billingaddress_code_shippingaddress_code"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KnownBuyer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cbid", models.CharField(max_length=64)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Purchase",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "reference",
                    models.CharField(blank=True, db_index=True, editable=False, max_length=40),
                ),
                ("product_class", models.CharField(blank=True, max_length=255)),
                ("shipping_zip", models.CharField(blank=True, max_length=10)),
                ("checkout_session_id", models.CharField(blank=True, db_index=True, max_length=64)),
                ("session_status", models.CharField(blank=True, max_length=16)),
                ("notice_url", models.CharField(blank=True, editable=False, max_length=500)),
                ("client_token", models.CharField(blank=True, editable=False, max_length=200)),
                (
                    "ack_id",
                    models.CharField(
                        blank=True, db_index=True, max_length=64, verbose_name="acknowledgment"
                    ),
                ),
                ("receipt", models.TextField(blank=True, editable=False)),
                (
                    "cbid",
                    models.CharField(
                        blank=True, db_index=True, max_length=64, verbose_name="buyer"
                    ),
                ),
                (
                    "clearance_id",
                    models.CharField(
                        blank=True, db_index=True, max_length=64, verbose_name="clearance"
                    ),
                ),
                ("cleared", models.BooleanField(blank=True, null=True)),
                ("reasons", models.JSONField(blank=True, default=list)),
                ("obligations", models.JSONField(blank=True, default=list)),
                ("clearance_token", models.TextField(blank=True, editable=False)),
                ("cleared_until", models.DateTimeField(blank=True, null=True)),
                ("shipped_at", models.DateTimeField(blank=True, null=True)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "order",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="purchase",
                        to="order.order",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
