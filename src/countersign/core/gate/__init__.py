"""The gate of the API: routes and acts, with their parameters and responses."""
