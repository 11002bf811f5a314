"""Developer tools that write the files shipped with the service."""
