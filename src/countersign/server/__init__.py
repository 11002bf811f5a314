"""The server: the application over all routes, its pages, and the process."""
