"""Webhooks: endpoints, signatures, delivery, routes and commands."""
