"""The gate of the API: routes and acts, and what they are given and reply."""
