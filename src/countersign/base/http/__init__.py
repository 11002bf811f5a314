"""HTTP machinery that knows no noun: routes, replies, bodies, errors."""
