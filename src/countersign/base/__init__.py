"""What everything stands on: ids, time, errors, settings, the database, HTTP."""
