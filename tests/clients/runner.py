"""Runs a case of clients/behaviour.json with a Python client; Node.js has a runner of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pytest

from countersign_client import AsyncCountersign, Countersign, CountersignError, Retries
from tests.clients.proxy import CASES, Proxy

_NAME: Final = re.compile(r"\$([a-z_]+)")


@dataclass(kw_only=True)
class Run:
    """One case with one kind of client."""

    kind: type[Countersign | AsyncCountersign]
    name: str
    proxy: Proxy
    key: str
    values: dict[str, Any]
    """The value of `$name`."""
    waits: list[float] = field(default_factory=list)

    @property
    def runner(self) -> str:
        return self.kind.__name__

    async def run(self) -> None:
        """Make the calls, and judge them."""
        case = CASES[self.name]
        here = self.proxy.base_url(self.runner, self.name)
        self.values["receiver"] = f"{here}/-received"
        async with AsyncExitStack() as stack:
            clients: dict[str, Any] = {}
            for step in case["steps"]:
                key = self._value(step.get("key", self.key))
                if key not in clients:
                    base = self.values["closed"] if case.get("unreachable") else here
                    clients[key] = await self._client(stack, case, key, base)
                await self._step(clients[key], step)
        self._judge(case)

    async def _client(
        self, stack: AsyncExitStack, case: Mapping[str, Any], key: str, base: str
    ) -> Countersign | AsyncCountersign:
        settings: dict[str, Any] = {
            "api_key": key,
            "base_url": base,
            "timeout": case.get("timeout", 30),
            "retries": Retries(**case.get("retries", {})),
        }
        if issubclass(self.kind, Countersign):
            return stack.enter_context(self.kind(**settings, sleep=self.waits.append))

        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        return await stack.enter_async_context(AsyncCountersign(**settings, sleep=sleep))

    async def _step(self, client: Any, step: Mapping[str, Any]) -> None:  # noqa: ANN401 - one of two
        if "error" in step:
            with pytest.raises(CountersignError) as caught:
                await self._act(client, step)
            assert_has(facts_of(caught.value), step["error"], str(step))
            return
        result = await self._act(client, step)
        for name, path in step.get("keep", {}).items():
            self.values[name] = value_at(result, path)
        if "exactly" in step:
            assert len(result) == step["exactly"], result
        if "expect" in step:
            assert_has(shown(result), shown(self._value(step["expect"])), str(step))

    async def _act(self, client: Any, step: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any result
        if "unwrap" in step:
            return self._unwrap(client, self._value(step["unwrap"]))
        method = value_at(client, step["call"])
        given = {**self._value(step.get("with", {})), **self._value(step.get("options", {}))}
        result = method(*self._value(step.get("at", [])), **given)
        if inspect.isawaitable(result):
            return await result
        if hasattr(result, "__aiter__"):
            return [item async for item in result]
        return list(result) if hasattr(result, "pages") else result

    def _unwrap(self, client: Any, wanted: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of two
        message = self.proxy.messages[self.runner, self.name][-1]
        headers = {n: v for n, v in message["headers"].items() if n != wanted.get("without")}
        body = (message["body"] + wanted.get("body", "")).encode()
        return client.webhooks.unwrap(body, headers, secret=wanted["secret"], now=wanted.get("now"))

    def _judge(self, case: Mapping[str, Any]) -> None:
        seen = self.proxy.attempts[self.runner, self.name]
        if "attempts" in case:
            assert len(seen) == case["attempts"], seen
        if "statuses" in case:
            assert [attempt["status"] for attempt in seen] == case["statuses"]
        if "waits" in case:
            assert len(self.waits) == len(case["waits"]), self.waits
            for wait, (low, high) in zip(self.waits, case["waits"], strict=True):
                assert low <= wait <= high, self.waits
        if "same_key" in case:
            first, last = (seen[number] for number in case["same_key"])
            assert first["key"]
            assert first["key"] == last["key"]
            assert first["body"] == last["body"]

    def _value(self, given: Any) -> Any:  # noqa: ANN401 - any JSON
        """The text with its variables replaced."""
        if isinstance(given, dict):
            return {name: self._value(item) for name, item in given.items()}
        if isinstance(given, list):
            return [self._value(item) for item in given]
        if not isinstance(given, str):
            return given
        if whole := _NAME.fullmatch(given):
            return self.values[whole[1]]
        return _NAME.sub(lambda found: str(self.values[found[1]]), given)


def facts_of(error: CountersignError) -> dict[str, Any]:
    """The expected error in the table."""
    return {
        "class": type(error).__name__,
        "code": error.code,
        "status": error.status,
        "retry_after": error.retry_after,
        "has_request_id": error.request_id is not None,
    }


def value_at(found: Any, path: str) -> Any:  # noqa: ANN401 - any result
    """`secrets.0.public_key` of a result; all of it for no path."""
    for part in filter(None, path.split(".")):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found


def shown(result: Any) -> Any:  # noqa: ANN401 - any result
    """A result as JSON has it."""
    if isinstance(result, bytes):
        return result.decode("latin-1")
    return msgspec.to_builtins(result)


def assert_has(found: Any, expected: Any, where: str) -> None:  # noqa: ANN401 - any JSON
    """Everything that is expected is there; of a list, as many items from its start."""
    if isinstance(expected, dict) and "begins" in expected:
        assert found.startswith(expected["begins"]), f"{where}: {found[:80]!r}"
    elif isinstance(expected, dict):
        for name, item in expected.items():
            assert_has(found[name], item, f"{where} .{name}")
    elif isinstance(expected, list):
        assert len(found) >= len(expected), f"{where}: {found}"
        for number, item in enumerate(expected):
            assert_has(found[number], item, f"{where} [{number}]")
    else:
        assert found == expected, f"{where}: {found!r}"
