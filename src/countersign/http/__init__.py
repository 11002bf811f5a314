"""The HTTP edge: one route table, plain ASGI, and every failure in one shape."""
