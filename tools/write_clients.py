"""Writes the generated files of both clients from the OpenAPI document: `make clients`."""

from __future__ import annotations

import json
import sys

from tools import clients_python, clients_typescript
from tools.clients import ROOT, Document


def main() -> None:
    document = Document(json.loads((ROOT / "spec" / "openapi.json").read_bytes()))
    files = clients_python.files(document) | clients_typescript.files(document)
    for path, text in files.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        sys.stderr.write(f"{path}\n")


if __name__ == "__main__":
    main()
