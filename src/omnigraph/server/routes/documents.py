"""Parts of the OpenAPI document that the framework does not derive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from omnigraph.server.answers import MediaType
from omnigraph.server.wire import Problem

PROBLEM: Final = "application/problem+json"
_REFERENCE: Final = "#/components/schemas/{model}"
_BINARY: Final = {"type": "string", "format": "binary"}
_bodies: Final[dict[str, type[BaseModel]]] = {}
"""The bodies that routes read themselves, by name."""

PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": "A problem",
        "content": {PROBLEM: {"schema": {"$ref": _REFERENCE.format(model=Problem.__name__)}}},
    }
    for status in (
        400,
        401,
        403,
        404,
        405,
        406,
        409,
        410,
        412,
        413,
        415,
        422,
        429,
        500,
        501,
        502,
        503,
    )
}
"""What every route may answer besides what it is for."""


def takes(shape: type[BaseModel]) -> dict[str, Any]:
    """The part of the document that describes a body which the route reads itself."""
    _bodies[shape.__name__] = shape
    schema = {"$ref": _REFERENCE.format(model=shape.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def takes_bytes(kinds: Iterable[str]) -> dict[str, Any]:
    """The part that describes a body of rows, in one of several media types."""
    content = {kind: {"schema": _BINARY} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}


def gives(
    shape: type[BaseModel], *others: MediaType | str, status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """The part that describes an answer, which may have other media types than JSON, too."""
    content = {str(kind): {"schema": {"type": "string"}} for kind in others}
    return {status: {"model": shape, "content": content}}


def gives_bytes(kind: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The part that describes an answer which is no JSON."""
    return {status: {"description": "Successful Response", "content": {kind: {"schema": _BINARY}}}}


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole document: what the framework derives, the bodies, and the tokens."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = FastAPI.openapi(app)
    components = document.setdefault("components", {})
    shapes: list[Any] = [(shape, "validation") for shape in (*_bodies.values(), Problem)]
    _, definitions = models_json_schema(shapes, ref_template=_REFERENCE)
    schemas = components.setdefault("schemas", {})
    schemas |= definitions["$defs"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path.startswith("/graphs") or (
                path == "/session" and "requestBody" not in operation
            ):
                operation["security"] = [{"token": []}]
    app.openapi_schema = document
    return document


def name_operation(route: APIRoute) -> str:
    """The name of an operation in the document, and so of the function in a generated client.

    It is that of its function: `query`, or `merge_proposal` for what is done to one proposal.
    """
    if "/calls/" in route.path:
        return f"call_{route.name}"
    if "/proposals/{number}/" in route.path:
        return f"{route.name}_proposal"
    return route.name
