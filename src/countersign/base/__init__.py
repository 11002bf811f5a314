"""The lowest layer: ids, time, errors, settings, the database, HTTP."""
