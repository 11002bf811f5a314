"""Texts of the buyer's interface, in each locale."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    (files("countersign.hosted.toolkit") / "words.toml").read_text("utf-8")
)
"""By locale, then by name; `{vendor}`, `{number}` and `{provider}` are placeholders."""
LOCALES: Final = tuple(WORDS)
