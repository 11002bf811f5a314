"""People who use the console: who may come in, with what role, and how they sign in."""
