"""Measures a source tree: sizes, circles of imports, and names that are declared twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeGuard


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module of the tree, read."""

    place: str
    """Its path in the package, such as `core/buyers/model.py`."""
    name: str
    """As imports name it, such as `countersign.core.buyers.model`."""
    lines: int
    code: int
    """Lines that are neither blank nor a comment, a docstring or an import."""
    tree: ast.Module


@cache
def modules_of(package: Path) -> list[Module]:
    """Every module under a package's folder."""
    return [_read(package, path) for path in sorted(package.rglob("*.py"))]


def circle_of_imports(modules: list[Module]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; or none.

    Imports in functions and for type checkers count as well.
    """
    known = {module.name for module in modules}
    graph = {module.name: set(_imported(module, known)) - {module.name} for module in modules}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def protocols_of(modules: list[Module]) -> list[str]:
    """The names of the classes that are Protocols."""
    return [
        node.name
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and "Protocol" in map(_name_of, node.bases)
    ]


def declared_twice(modules: list[Module]) -> Mapping[str, list[str]]:
    """Public names of types that several modules declare, each with those modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in _types(module.tree):
            if not name.startswith("_"):
                places[name].append(module.place)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def _read(package: Path, path: Path) -> Module:
    place = path.relative_to(package)
    parts = [package.name, *place.with_suffix("").parts]
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Module(
        place=place.as_posix(),
        name=".".join(part for part in parts if part != "__init__"),
        lines=text.count("\n"),
        code=_lines_of_code(text, tree),
        tree=tree,
    )


def _lines_of_code(text: str, tree: ast.Module) -> int:
    written = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            written -= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return len(written)


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Of a module, class or function, or below a field or constant."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _imported(module: Module, known: set[str]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                # `from package import name`: a module, or something that the package declares.
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else str(node.module)


def _types(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and _name_of(node.annotation) == "TypeAlias":
            yield _name_of(node.target)


def _name_of(node: ast.expr) -> str:
    """The last word of `name`, `module.name` or `name[…]`."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
