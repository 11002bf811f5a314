"""The folders with packages for Node.js, and what their lock files promise."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[2]
WEB: Final = _ROOT / "web"
AXE: Final = _ROOT / "tests" / "browser" / "javascript"
WEBHOOKS: Final = _ROOT / "tests" / "webhooks" / "javascript"
GENERATORS: Final = _ROOT / "tests" / "clients" / "javascript"
PRISM: Final = _ROOT / "tests" / "bridge" / "javascript"
CLIENT: Final = _ROOT / "clients" / "typescript"
SHOP: Final = _ROOT / "examples" / "node-shop"
FOLDERS: Final = (WEB, AXE, WEBHOOKS, GENERATORS, PRISM, CLIENT, SHOP)
"""Tests marked `npm` can use those where `npm ci` was run."""


def locked(folder: Path) -> dict[str, Any]:
    """The pinned packages in the lock file, by path, without folders of this repository."""
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    parts = {name: part for name, part in lock["packages"].items() if "node_modules/" in name}
    return {name: part for name, part in parts.items() if not part.get("link")}


def installed(folder: Path) -> bool:
    return (folder / "node_modules" / ".package-lock.json").is_file()


def build_client(folder: Path) -> Path:
    """Compile the TypeScript client into a package in this folder; gives where its modules are."""
    shutil.copy(CLIENT / "package.json", folder)
    command = ["npm", "exec", "--no", "--", "tsc", "--outDir", str(folder / "dist")]
    done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"
