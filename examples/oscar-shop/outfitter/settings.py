"""Settings of the shop: Oscar's settings, those of Countersign, and a database in a file."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import oscar
from oscar.defaults import *  # noqa: F403 - as Oscar's documentation says
from oscar.defaults import (
    OSCAR_DASHBOARD_NAVIGATION,
)
from oscar.defaults import (
    OSCAR_REQUIRED_ADDRESS_FIELDS as REQUIRED,
)

HERE = Path(__file__).parent
DATA = Path(os.environ.get("SHOP_DATA_DIR", "var/oscar-shop")).resolve()

# The one setting of Countersign, from the environment.
COUNTERSIGN = {
    "BASE_URL": os.environ.get("COUNTERSIGN_BASE_URL", "http://127.0.0.1:8080"),
    "API_KEY": os.environ.get("COUNTERSIGN_API_KEY", ""),
    "WEBHOOK_SECRET": os.environ.get("SHOP_WEBHOOK_SECRET", ""),
}

# A sandbox on this machine: a shop on the internet needs a key of its own, and DEBUG off.
SECRET_KEY = "only for the sandbox"  # noqa: S105
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]

INSTALLED_APPS = [
    *oscar.INSTALLED_APPS,
    "countersign_django",
    "outfitter.sales.apps.SalesConfig",
]
# A fork of Oscar's checkout: it places orders that wait for their clearance.
_CHECKOUT = "oscar.apps.checkout.apps.CheckoutConfig"
INSTALLED_APPS[INSTALLED_APPS.index(_CHECKOUT)] = "outfitter.checkout.apps.CheckoutConfig"

SITE_ID = 1
ROOT_URLCONF = "outfitter.urls"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [HERE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "oscar.apps.search.context_processors.search_form",
                "oscar.apps.checkout.context_processors.checkout",
                "oscar.apps.communication.notifications.context_processors.notifications",
                "oscar.core.context_processors.metadata",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = (
    "oscar.apps.customer.auth_backends.EmailBackend",
    "django.contrib.auth.backends.ModelBackend",
)
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA / "shop.sqlite3",
        # A webhook and a returning buyer change the same order.
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
}
# The search queries the database itself: there is no index to update, and it logs that each time.
warnings.filterwarnings("ignore", module="haystack")
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
# Mails are files in a sandbox.
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = DATA / "mail"
# Where links in mails lead.
SHOP_URL = os.environ.get("SHOP_URL", "http://localhost:8000")
LANGUAGE_CODE = "en-us"
TIME_ZONE = "America/Los_Angeles"
USE_TZ = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [HERE / "static"]
MEDIA_URL = "/media/"
MEDIA_ROOT = DATA / "media"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

OSCAR_SHOP_NAME = "Ridgeline Outfitter"
OSCAR_DEFAULT_CURRENCY = "USD"
OSCAR_ALLOW_ANON_CHECKOUT = True
OSCAR_THUMBNAILER = "outfitter.pictures.NoPictures"
OSCAR_HIDDEN_FEATURES = ["reviews", "wishlists"]
OSCAR_REQUIRED_ADDRESS_FIELDS = (*REQUIRED, "state")
OSCAR_INITIAL_ORDER_STATUS = "Waiting"
OSCAR_INITIAL_LINE_STATUS = "Waiting"
OSCAR_ORDER_STATUS_PIPELINE = {
    "Waiting": ("Released", "Stopped"),
    "Released": ("Shipped", "On hold", "Stopped", "Refunded"),
    "On hold": ("Released", "Stopped", "Refunded"),
    "Shipped": ("Refunded",),
    "Stopped": (),
    "Refunded": (),
}
OSCAR_DASHBOARD_NAVIGATION += [
    {
        "label": "Dispatch",
        "icon": "fas fa-truck",
        "url_name": "sales:dispatch",
        "access_fn": lambda user, *_: user.is_staff,
    }
]
