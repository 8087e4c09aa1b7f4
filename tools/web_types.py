"""The types of the web app, from the OpenAPI document; `python -m tools.reference` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from omnigraph.server.app import make_app
from omnigraph.server.service import GraphService
from omnigraph.server.settings import read_settings

_HEADER: Final = (
    "// Written by `python -m tools.reference` from the OpenAPI document; "
    "change server/wire.py instead.\n"
)
_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def wire_types() -> str:
    """The text of the module that declares every document of the server."""
    with TemporaryDirectory() as folder:
        settings = read_settings(None, state=Path(folder), graphs={})
        schemas = make_app(GraphService(settings)).openapi()["components"]["schemas"]
    return _HEADER + "".join(_declaration(name, schemas[name]) for name in sorted(schemas))


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    text = " ".join(str(schema.get("description", "")).split("\n\n")[0].split())
    comment = f"/** {text} */\n" if text else ""
    if "properties" not in schema:
        return f"\n{comment}export type {name} = {_type(schema)};\n"
    required = set(schema.get("required", ()))
    lines = [
        f"  {field}{'' if field in required else '?'}: {_type(member)};\n"
        for field, member in schema["properties"].items()
    ]
    if schema.get("additionalProperties") is True:
        lines.append("  [name: string]: unknown;\n")
    return f"\n{comment}export interface {name} {{\n{''.join(lines)}}}\n"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema as an expression of TypeScript.

    >>> _type({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]})
    'number[] | null'
    """
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        return " | ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    if "anyOf" in schema:
        members = dict.fromkeys(_type(member) for member in schema["anyOf"])
        return " | ".join(members)
    kind = schema.get("type")
    if kind == "array":
        item = _type(schema.get("items", {}))
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object":
        more = schema.get("additionalProperties", True)
        value = "unknown" if isinstance(more, bool) else _type(more)
        return f"Record<string, {value}>"
    return "unknown" if kind is None else _PLAIN[kind]
