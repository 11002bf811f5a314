"""The order that a purchase is about, as `makemigrations` writes it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sales", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="purchase",
            name="bound_to",
            field=models.CharField(blank=True, db_index=True, editable=False, max_length=200),
        ),
    ]
