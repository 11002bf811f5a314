"""The version of this package; reading it from the metadata would double the time of an import."""

__version__ = "0.1.0"
