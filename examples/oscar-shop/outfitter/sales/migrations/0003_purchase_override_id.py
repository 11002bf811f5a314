"""The manual override of a refusal, as `makemigrations` writes it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sales", "0002_purchase_bound_to")]

    operations = [
        migrations.AddField(
            model_name="purchase",
            name="override_id",
            field=models.CharField(blank=True, max_length=64, verbose_name="override"),
        ),
    ]
