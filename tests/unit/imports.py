"""Reads the imports of a source tree, and reports those against the direction of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The rooms from top to bottom, wing by wing: each may import only those below it. Rooms of one line
# are level, and import neither each other nor rooms above.
_SERVICE = (
    "__main__",
    "root",
    "server",
    "operate.commands",
    "operate.deployment",
    "operate.doctor",
    "operate",
    "staff.acts",
    "staff.people",
    "hosted.self_service",
    "hosted.pages",
    "hosted.remembered",
    "hosted.toolkit",
    "core.sandbox",
    "core.privacy",
    "core.webhooks",
    "core.dossiers",
    "core.checkout",
    "core.clearances",
    "core.acknowledgments",
    "core.buyers",
    "core.orders",
    "core.notices",
    "core.parties",
    "core.log",
    "core.vault",
    "core.events",
    "core.gate",
    "core.access",
    "core.paper",
    "identity",
    "base.http",
    "base.cli",
    "base.db",
    "base",
    "core hosted staff",
    "countersign",
)
FORMATS = "*"
"""All unnamed modules of the evidence: its formats, which import each other."""
_EVIDENCE = (
    "root",
    "verify_command",
    "monitor",
    "cli",
    "files",
    "timestamp_signer",
    FORMATS,
    "offline",
    "countersign_evidence",
)
_WINGS = {
    "countersign",
    *(f"countersign.{room.partition('.')[0]}" for room in " ".join(_SERVICE).split()),
}
FLOORS = {"countersign": _SERVICE, "countersign_evidence": _EVIDENCE}
"""The packages; each may import those after it, too."""
# Shares no code with the checked modules.
_ALONE = {"offline"}

# Formats of evidence and the models of the nouns are pure: values in, values out.
_PURE = {"base/values.py"}
_PURE_MODULES = {"model"}
_IMPURE_MODULES = {
    "asyncio", "concurrent", "fcntl", "getpass", "glob", "http", "logging", "multiprocessing",
    "os", "pathlib", "platform", "random", "secrets", "select", "shutil", "signal", "socket",
    "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
# Verifying and making signatures is arithmetic; `io` holds bytes in memory.
_PURE_THIRD_PARTY = {"cryptography", "msgspec"}
_IMPURE_CALLS = {"now", "utcnow", "today", "urandom", "token_bytes", "monotonic", "perf_counter"}
_IMPURE_BUILTINS = {"open", "input", "print", "eval", "exec", "__import__", "breakpoint"}


@dataclass(frozen=True)
class Import:
    """One imported module."""

    line: int
    module: str
    relative: bool


def wrong_imports(package: Path) -> list[str]:
    """Every break of the rules under this package's folder, as `path:line: what`."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        names = [name for name in place.with_suffix("").parts if name != "__init__"]
        part = _part(package.name, names)
        pure = (
            place.as_posix() in _PURE
            or place.stem in _PURE_MODULES
            or _is_format(package.name, part)
        )
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, what in sorted(_wrong(tree, part, package, pure=pure)):
            found.append(f"{place}:{line}: {what}")
    return found


def _wrong(tree: ast.Module, part: str, package: Path, *, pure: bool) -> Iterator[tuple[int, str]]:
    if _floor(package.name, part) is None:
        yield 1, f"{part} has no place in the order of imports"
        return
    for found in _imports(tree):
        names = found.module.split(".")
        if found.relative:
            yield found.line, "a relative import"
        elif names[0] == package.name:
            other = _part(package.name, names[1:])
            if not _may_import(part, other, package.name):
                yield found.line, f"{part} must not import {other}"
        elif names[0].startswith("countersign") and not _is_below(names[0], package.name):
            yield found.line, f"{part} must not import {names[0]}"
        elif pure and not _is_pure(names):
            yield found.line, f"{part} is pure and must not import {names[0]}"
    if pure:
        yield from _impure_calls(tree, part)


def _part(package: str, names: list[str]) -> str:
    """The room of a module, by its names below the package: `core.log`; `base` for `base.ids`."""
    rooms = {room for floor in FLOORS[package] for room in floor.split()}
    room = ".".join(names[:2])
    return room if room in rooms else (names or [package])[0]


def _may_import(part: str, other: str, package: str) -> bool:
    if other in {part, package}:
        return True
    here, there = _floor(package, part), _floor(package, other)
    if part in _ALONE or here is None or there is None:
        return False
    return there > here or _is_format(package, part) is _is_format(package, other) is True


def _floor(package: str, part: str) -> int | None:
    """How far from the top; None if the part has no place."""
    floors = FLOORS[package]
    named = (floor for floor, rooms in enumerate(floors) if part in rooms.split())
    return next(named, floors.index(FORMATS) if FORMATS in floors else None)


def _is_format(package: str, part: str) -> bool:
    return FORMATS in FLOORS[package] and _floor(package, part) == FLOORS[package].index(FORMATS)


def _is_below(other: str, package: str) -> bool:
    order = list(FLOORS)
    return other in order and order.index(other) > order.index(package)


def _imports(tree: ast.Module) -> Iterator[Import]:
    """Every import, wherever it stands: in functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, relative=False)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            relative = node.level > 0
            if module in _WINGS:
                # `from countersign.core import log` imports the room, or a name of the package.
                for alias in node.names:
                    dunder = alias.name.startswith("__")
                    yield Import(
                        node.lineno, module if dunder else f"{module}.{alias.name}", relative
                    )
            else:
                yield Import(node.lineno, module, relative)


def _is_pure(names: list[str]) -> bool:
    from sys import stdlib_module_names  # noqa: PLC0415

    module = names[0]
    if module in _PURE_THIRD_PARTY:
        return True
    if module in FLOORS:
        return names[1] == "offline" or _is_format(module, names[1])
    return module in stdlib_module_names and module not in _IMPURE_MODULES


def _impure_calls(tree: ast.Module, part: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _IMPURE_CALLS:
            yield node.lineno, f"{part} is pure and must not call {node.func.attr}()"
        elif isinstance(node.func, ast.Name) and node.func.id in _IMPURE_BUILTINS:
            yield node.lineno, f"{part} is pure and must not call {node.func.id}()"
