"""A django-salesman shop in its own process: it sells to a buyer, and prints the stored order.

The argument says how its order has the fields: `base` or `related`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command

SALESMAN = ("salesmancore", "salesmanbasket", "salesmancheckout", "salesmanorders")


def configure(order_model: str) -> None:
    settings.configure(
        SECRET_KEY="only of tests",
        ROOT_URLCONF="countersign_django.urls",
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "rest_framework",
            "salesman.core",
            "salesman.basket",
            "salesman.checkout",
            "salesman.orders",
            "countersign_django",
            "tests.django_shop.salesman_shop",
        ],
        MIGRATION_MODULES=dict.fromkeys((*SALESMAN, "auth", "contenttypes", "countersign_django")),
        LOGGING_CONFIG=None,
        SALESMAN_ORDER_MODEL=order_model,
        COUNTERSIGN={
            "BASE_URL": os.environ["COUNTERSIGN_BASE_URL"],
            "API_KEY": os.environ["COUNTERSIGN_API_KEY"],
        },
    )
    django.setup()
    call_command("check")
    call_command("migrate", run_syncdb=True, verbosity=0)


def main(*, is_base: bool) -> list[dict[str, Any]]:
    """Sell to a buyer who does everything required, and to one whose order is cancelled."""
    configure("salesman_shop.Purchase" if is_base else "salesmanorders.Order")
    from salesman.core.utils import get_salesman_model  # noqa: PLC0415 - only after the set-up

    from countersign_django import orders, signals  # noqa: PLC0415 - as above
    from countersign_django.models import State  # noqa: PLC0415 - as above
    from tests.django_shop.salesman_shop.models import Check  # noqa: PLC0415 - as above
    from tests.storefront.shopper import Shopper  # noqa: PLC0415 - as above

    model = get_salesman_model("Order")

    def pay(order: Any, **_: object) -> None:  # noqa: ANN401 - either of the two
        sold = order if is_base else order.order
        if order.state == State.CLEARED:
            sold.pay(sold.total, "a transaction")
            sold.status = "PROCESSING"
        elif order.state == State.CANCELLED:
            sold.status = "CANCELLED"
        sold.save(update_fields=["status"])

    signals.order_changed.connect(pay)
    needed = orders.needs(["accessory"], state="CA", zip_code="94105", residence_state="CA")
    assert needed is not None
    kept = []
    for number, is_bought in (("1", True), ("2", False)):
        sold = model.objects.create(ref=number, total=129)
        order = sold if is_base else Check.objects.create(order=sold)
        orders.begin(order, needed, return_url=f"https://shop.example.com/orders/{number}")
        stale = type(order)._base_manager.get(pk=order.pk)
        if is_bought:
            shopper = Shopper("")
            with shopper.client:
                shopper.initial(shopper.identify(shopper.open(order.notice_url)))
            orders.refresh(order)
        else:
            orders.cancel(order)
        stale.save()
        order.refresh_from_db()
        sold = model.objects.get(pk=sold.pk)
        kept.append(
            {
                "state": order.state,
                "paid": float(sold.amount_paid),
                "evidence": [bool(order.ack_id), bool(order.receipt)],
            }
        )
    return kept


if __name__ == "__main__":
    json.dump(main(is_base=sys.argv[1] == "base"), sys.stdout)
