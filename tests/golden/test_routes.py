"""The routes of a server: their parameters, bodies and answers, as the OpenAPI document has them.

What the documents in bodies and answers have is recorded in `web/src/api/wire.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from omnigraph.server.app import make_app
from omnigraph.server.service import GraphService
from omnigraph.server.settings import read_settings
from tests.support.cases import check_text

RECORD: Final = Path(__file__).parent / "routes.txt"


def kind(schema: Mapping[str, Any]) -> str:
    """A schema in a word."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(kind, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"{kind(schema.get('items', {}))}[]"
    return str(schema.get("format") or schema.get("type") or "anything")


def describe(document: Mapping[str, Any]) -> Iterator[str]:
    """A block for each method of each route."""
    for path, methods in sorted(document["paths"].items()):
        for method, route in sorted(methods.items()):
            yield f"{method.upper()} {path}"
            for each in route.get("parameters", ()):
                need = "" if each.get("required") else "?"
                yield f"  {each['in']} {each['name']}{need}: {kind(each['schema'])}"
            for media, body in route.get("requestBody", {}).get("content", {}).items():
                yield f"  body {media}: {kind(body.get('schema', {}))}"
            problems = []
            for status, answer in sorted(route["responses"].items()):
                contents = [
                    f"{media}: {kind(each.get('schema', {}))}"
                    for media, each in answer.get("content", {}).items()
                ]
                if contents == ["application/problem+json: Problem"]:
                    problems.append(status)
                else:
                    yield f"  {status} {', '.join(contents)}".rstrip()
            yield f"  problems {' '.join(problems)}\n"


def test_routes_are_those_recorded(tmp_path: Path) -> None:
    app = make_app(GraphService(read_settings(None, state=tmp_path, graphs={})))
    check_text(RECORD, "\n".join(describe(app.openapi())))
