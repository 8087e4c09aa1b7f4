"""Methods of remote graphs: they have the signatures of the graph's own, and send what they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from omnigraph.documents.operations import OPERATIONS, Operation

P = ParamSpec("P")
R = TypeVar("R")


class RemotePart(Protocol):
    """What has remote methods."""

    @property
    def prefix(self) -> str:
        """What the names of its operations begin with: `branches.`, or nothing."""
        ...

    def call(self, operation: Operation, arguments: Mapping[str, Any]) -> Any:
        """Have the server carry out an operation, and return its result."""
        ...


def remote(local: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method that has the server call the one that it is made from.

    Arguments that do not fit the signature are refused here, as the local method refuses them.
    """

    @like(local)
    def send(self: RemotePart, arguments: dict[str, Any]) -> R:
        result: R = self.call(OPERATIONS[f"{self.prefix}{local.__name__}"], arguments)
        return result

    return send


def like(
    local: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[[Any, dict[str, Any]], R]], Callable[Concatenate[Any, P], R]]:
    """Give a function of named arguments the signature of a local method."""
    bind = signature(local).bind

    def decorate(
        function: Callable[[Any, dict[str, Any]], R],
    ) -> Callable[Concatenate[Any, P], R]:
        @wraps(local)
        def send(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
            try:
                _, *arguments = bind(self, *args, **kwargs).arguments.items()
            except TypeError as misfit:
                message = f"{local.__qualname__}() {misfit}"
                raise TypeError(message) from None
            return function(self, dict(arguments))

        return send

    return decorate
