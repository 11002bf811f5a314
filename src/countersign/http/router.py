"""Matching a method and a path to a route."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from countersign.errors import MethodNotAllowed, NotFound
from countersign.http.route import R_contra, Route


class Router(Generic[R_contra]):
    """Looks a path up segment by segment; a literal segment wins over a parameter."""

    def __init__(self, routes: Iterable[Route[R_contra]]) -> None:
        self._exact: dict[str, dict[str, Route[R_contra]]] = {}
        self._around: dict[tuple[str, str], dict[str, Route[R_contra]]] = {}
        self._below: dict[str, dict[str, Route[R_contra]]] = {}
        for route in routes:
            before, brace, rest = route.path.partition("{")
            if rest == "path*}":
                known = self._below.setdefault(before, {})
            elif brace:
                known = self._around.setdefault((before, rest.partition("}")[2]), {})
            else:
                known = self._exact.setdefault(route.path, {})
            known[route.method] = route
            if route.method == "GET":
                known["HEAD"] = route

    def match(self, method: str, path: str) -> tuple[Route[R_contra], str]:
        """The route and the value of its path parameter ("" without one).

        Raises:
            NotFound: there is no such path.
            MethodNotAllowed: the path does not take this method.
        """
        methods, parameter = self._find(path)
        route = methods.get(method)
        if route is None:
            raise MethodNotAllowed
        return route, parameter

    def allowed(self, path: str) -> bytes:
        """The value of the `Allow` header for a path that exists."""
        return ", ".join(sorted(self._find(path)[0])).encode()

    def _find(self, path: str) -> tuple[dict[str, Route[R_contra]], str]:
        exact = self._exact.get(path)
        if exact is not None:
            return exact, ""
        # A parameter is the third segment: /v1/{collection}/{parameter}[/{action}].
        parts = path.split("/", 4)
        if len(parts) >= 4 and parts[3]:
            after = "/" + parts[4] if len(parts) > 4 else ""
            found = self._around.get((f"/{parts[1]}/{parts[2]}/", after))
            if found is not None:
                return found, parts[3]
        for before, found in self._below.items():
            if path.startswith(before):
                return found, path[len(before) :]
        msg = "The path was not found."
        raise NotFound(msg)
