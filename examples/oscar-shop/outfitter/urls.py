"""The addresses: Oscar's, the webhook of Countersign, and those around an order."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

from outfitter.sales.views import CatalogueView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("countersign/", include("countersign_django.urls")),
    path("", include("outfitter.sales.urls")),
    # Oscar's own list of products needs a search engine.
    path("catalogue/", CatalogueView.as_view()),
    path("", include(apps.get_app_config("oscar").urls[0])),
]
