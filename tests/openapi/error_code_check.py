"""A check that schemathesis loads by this file's path, in a process of its own.

The document names the codes of an answer by its examples; JSON Schema leaves them open, so that a
client made from the document does not break when a code is added.
"""

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response


@schemathesis.check
def only_listed_error_codes(_context: CheckContext, response: Response, case: Case[Any]) -> None:
    """An operation fails only with codes that the document lists for it."""
    if response.status_code < 400:
        return
    body = response.json()
    assert set(body) == {"error"}, f"not the one shape of a failure: {body}"
    assert set(body["error"]) == {"code", "message"}, f"not the one shape of a failure: {body}"
    found = case.operation.responses.get(str(response.status_code))
    listed = {} if found is None else found.definition
    listed = listed.get("content", {}).get("application/json", {}).get("examples", {})
    code = body["error"]["code"]
    assert code in listed, f"{code} is not among {', '.join(listed) or 'no codes'}"
