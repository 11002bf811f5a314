"""Notice files that are not the shipped one: nothing may know its id or its number of lines."""

import json
from collections.abc import Sequence
from pathlib import Path

LINES = ("I am of age.", "I know the law.", "I keep it locked away.")


def write_notice(
    path: Path,
    notice_id: str = "storage-law",
    version: str = "2026-03",
    lines: Sequence[str] = LINES,
    **changed: object,
) -> Path:
    """Write a notice file with these lines."""
    fields: dict[str, object] = {
        "id": notice_id,
        "version": version,
        "title": "Notice of safe storage",
        "heading": "By law you must know that:",
        "attestation_text": "I have read this.",
        "source_law": "Example Code § 1",
        "source_bill": "EB 1",
        "jurisdiction": "US-XX",
        "language": "en",
        "effective_from": "2026-03-01",
        "source_url": "https://example.com/law",
    }
    # A JSON string is a TOML string too.
    words = [f"{name} = {json.dumps(value)}" for name, value in (fields | changed).items()]
    for number, text in enumerate(lines, 1):
        words += ["[[bullets]]", f'id = "L{number}"', f"text = {json.dumps(text)}"]
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    return path
