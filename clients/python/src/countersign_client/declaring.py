"""An operation is declared once, as the request that it makes; a client sends it, or awaits it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from countersign_client.call import Call, Page
from countersign_client.sending import AsyncSender, Sender

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=Sender | AsyncSender)


class Resource(Generic[S]):
    """The operations on one kind of object."""

    def __init__(self, sender: S) -> None:
        self._sender = sender


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that describes a request, called as one that sends it."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._describe = describe
        # For `help` and `inspect.signature`.
        self.__doc__, self.__wrapped__ = describe.__doc__, describe

    @overload
    def __get__(self, resource: Resource[Sender], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncSender], owner: object = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any], owner: object = None) -> Any:
        return partial(self._perform, resource)

    def _perform(self, resource: Resource[Any], *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401 - what it returns, or what is awaited for it
        return resource._sender.send(self._describe(resource, *args, **kwargs))  # noqa: SLF001


class Listing(Generic[T]):
    """The items of a list, over all of its pages, which are requested when they are needed."""

    def __init__(self, sender: Sender, call: Call[Page[T]]) -> None:
        self._sender, self._call = sender, call

    def pages(self) -> Iterator[Page[T]]:
        """Page by page."""
        call = self._call
        while True:
            page = self._sender.send(call)
            yield page
            if page.next_cursor is None:
                return
            call = call.following(page.next_cursor)

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data


class AsyncListing(Generic[T]):
    """The items of a list, for `async for`."""

    def __init__(self, sender: AsyncSender, call: Call[Page[T]]) -> None:
        self._sender, self._call = sender, call

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Page by page."""
        call = self._call
        while True:
            page = await self._sender.send(call)
            yield page
            if page.next_cursor is None:
                return
            call = call.following(page.next_cursor)

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.data:
                yield item


class listing(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that describes the request for one page, called as one that lists all items."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[Page[T]]]) -> None:
        self._describe = describe
        # For `help` and `inspect.signature`.
        self.__doc__, self.__wrapped__ = describe.__doc__, describe

    @overload
    def __get__(
        self, resource: Resource[Sender], owner: object = None
    ) -> Callable[P, Listing[T]]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncSender], owner: object = None
    ) -> Callable[P, AsyncListing[T]]: ...
    def __get__(self, resource: Resource[Any], owner: object = None) -> Any:
        return partial(self._list, resource)

    def _list(self, resource: Resource[Any], *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401 - one of the two
        call = self._describe(resource, *args, **kwargs)
        sender = resource._sender  # noqa: SLF001
        if isinstance(sender, AsyncSender):
            return AsyncListing(sender, call)
        return Listing(sender, call)
