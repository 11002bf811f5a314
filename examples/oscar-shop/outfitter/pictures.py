"""The products have no pictures, so nothing has to make small ones."""

from __future__ import annotations

from oscar.core.thumbnails import AbstractThumbnailer


class NoPictures(AbstractThumbnailer):
    def generate_thumbnail(self, source: object, **options: object) -> object:
        return source

    def delete_thumbnails(self, source: object) -> None:
        """There are none."""
