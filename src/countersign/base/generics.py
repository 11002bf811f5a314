"""The type variables that generic functions share: any type, a result, parameters, a function."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
