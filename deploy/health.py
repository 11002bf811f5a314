#!/usr/bin/env -S python -IS
"""Ask the server of this container whether it responds: exit status 0, otherwise 1.

The image has it as the command `health`, since it has no curl.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException

PORT = int(os.environ.get("COUNTERSIGN_PORT", "8080"))

connection = HTTPConnection("127.0.0.1", PORT, timeout=2)
try:
    connection.request("GET", "/healthz")
    sys.exit(connection.getresponse().status != 200)
except (OSError, HTTPException) as error:
    sys.exit(f"The server does not respond: {error}")
