"""Toolkit for pages: screens, words, colors, forms."""
