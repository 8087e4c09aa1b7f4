"""The OpenAPI document: every route is driven from it, with good and bad input (schemathesis)."""

import re
import warnings
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

with warnings.catch_warnings():
    # It says of its own dependencies what no test of ours can change.
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-tar")
def write_archive(_: object, value: Any) -> bytes:
    """A body that is made up, where an archive is expected."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


KNOWN: Final[dict[str, list[Any]]] = {
    "operation": ["branches.list", "snapshot", "tags.list", "cleanup", "query"],
    "branch": ["main", "side"],
    "commit": ["v1"],
    "type_name": ["Person", "Badge"],
    "property_name": ["picture", "name"],
    "entity_id": ["Ada"],
    "id": ["Ada"],
    "name": ["all", "add"],
    "tag": ["v1"],
    "before": ["main", "v1"],
    "after": ["main", "side"],
    "source": ["side"],
    "into": ["main"],
    "number": [1],
    "query": [
        "query q() { match { $p: Person } return { $p.name } }",
        'query q() { insert Person { name: "x" } }',
    ],
    "schema": ["node Person { name: String @key }"],
}
"""Values that exist: what is only made up ends at the first check."""


@pytest.fixture(scope="module")
def api(served, graph_of_known_names):  # noqa: ARG001  # it makes what the names stand for
    document = httpx.get(f"{served.url}/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=served.url)
    return schema


@pytest.fixture(scope="module")
def graph_of_known_names(served):
    graph = served.service.graph("world", None)
    graph.branches.create("side")
    graph.mutate('query q() { insert Person { name: "Sid" } }', branch="side")
    graph.tags.create("v1")
    graph.queries.put(
        "query all() { match { $p: Person } return { $p.name } }\n"
        "query add($name: String) { insert Person { name: $name } }"
    )
    graph.proposals.create("side", "a proposal", actor="ada")
    return graph


def mend(case: Any, draw: Any) -> None:
    """Put values that exist in place of some that were made up."""
    for container in (case.path_parameters, case.query, case.body):
        if not isinstance(container, dict):
            continue
        for name in container:
            if name == "graph":
                container[name] = "world"
            elif name in KNOWN and draw(st.booleans()):
                container[name] = draw(st.sampled_from(KNOWN[name]))
    if isinstance(case.query, dict) and "wait" in case.query:
        case.query["wait"] = 0
    # No server listens to headers that a client may not send.
    case.headers = {
        name: value for name, value in (case.headers or {}).items() if name.lower() != "host"
    }


def test_every_route_answers_as_the_document_says(api, served):
    profile = settings.default
    assert profile is not None, "a profile is loaded"
    examples = max(3, profile.max_examples // 10)
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    count = 0
    for result in api.get_all_operations():
        operation = result.ok()
        for mode in modes:
            count += _drive(operation, mode, examples, served)
    assert count > 100


def test_refused_method_is_told_all_that_the_address_has(served):
    paths = httpx.get(f"{served.url}/openapi.json").json()["paths"]
    for path, methods in paths.items():
        address = served.url + re.sub(r"{\w+}", "1", path)
        refused = httpx.patch(address, headers={"Authorization": f"Bearer {served.token}"})
        assert refused.status_code == 405, path
        allowed = refused.headers["allow"].split(", ")
        assert allowed == sorted(method.upper() for method in methods), path


def _drive(operation: Any, mode: Any, examples: int, served: Any) -> int:
    statuses: list[int] = []
    headers = {"Authorization": f"Bearer {served.token}"}

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(case=operation.as_strategy(mode), data=st.data())
    def run(case: Any, data: Any) -> None:
        mend(case, data.draw)
        response = case.call(headers=headers, timeout=20)
        statuses.append(response.status_code)
        case.validate_response(response, checks=CHECKS)

    try:
        run()
    except Unsatisfiable:
        # Nothing is wrong input of a route that takes none.
        assert mode is GenerationMode.NEGATIVE, operation.path
    except Exception as failure:
        failure.add_note(f"{operation.method} {operation.path}, {mode}")
        raise
    return len(statuses)
