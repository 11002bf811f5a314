"""Acts of staff over the API: their operations respond only where the console is on."""
