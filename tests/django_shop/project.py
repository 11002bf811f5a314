"""A Django project with the app, set up in this process."""

from __future__ import annotations

import django
from django.conf import settings
from django.db import connections

SECRET = "whsec_" + "c2VjcmV0" * 4
PASSWORD = "the admin's own"


def configure() -> None:
    """Set Django up, once for this process; the database comes with a test."""
    if settings.configured:
        return
    settings.configure(
        SECRET_KEY="only of tests",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="tests.django_shop.urls",
        USE_TZ=True,
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": "set by a fixture",
                "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
            }
        },
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            "countersign_django",
            "tests.django_shop",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        LOGGING_CONFIG=None,
        STATIC_URL="static/",
        COUNTERSIGN={},
    )
    django.setup()


def use_database(path: str) -> None:
    """Make the tables of the project in this file."""
    from django.core.management import call_command  # noqa: PLC0415 - only after the set-up

    connections["default"].close()
    connections["default"].settings_dict["NAME"] = path
    call_command("migrate", run_syncdb=True, verbosity=0)
