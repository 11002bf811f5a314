"""The table of received events."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [
        migrations.CreateModel(
            name="ReceivedEvent",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                ("received_at", models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
            options={"ordering": ("-received_at",)},
        ),
    ]
