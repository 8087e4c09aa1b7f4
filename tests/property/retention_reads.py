"""The schema of a state of the model, and what queries find of it."""

from typing import Final

from omnigraph.graph import Graph
from tests.property.retention_model import State

BASIC_TYPES: Final = frozenset({"P", "C", "K"})
READ_PEOPLE: Final = "query q() { match { $p: P } return { $p.name } }"


def schema_text(state: State) -> str:
    """The schema that a state has."""
    own = {
        name: " ".join(f"{added}: I64 @default({len(added)})" for added in _added(state, name))
        for name in "PC"
    }
    basic = (
        f"node P {{ name: String @key  n: I64? @index  {own['P']} }}\n"
        f"node C {{ name: String @key  kind: enum(a, b)? @index  {own['C']} }}\n"
        "edge K: P -> P { w: I64? }\n"
    )
    extra = sorted(state.current_types - BASIC_TYPES)
    return basic + "".join(f"node {name} {{ name: String @key }}\n" for name in extra)


def _added(state: State, type_name: str) -> list[str]:
    return sorted(name for own, name in state.properties - state.lost if own == type_name)


def read_names(graph: Graph) -> set[tuple[str, str]]:
    """The names of all people and cities, as a query finds them."""
    return {
        (type_name, str(row["x.name"]))
        for type_name in ("P", "C")
        for row in graph.query(
            f"query q() {{ match {{ $x: {type_name} }} return {{ $x.name }} }}"
        ).rows()
    }


def names_of(state: State) -> set[tuple[str, str]]:
    return {row for row in state.rows if row[0] in ("P", "C")}


def count_edges(graph: Graph) -> int:
    """The number of edges, as arrays of neighbours have it."""
    (row,) = graph.query("query q() { match { $a k $b } return { count($b) as n } }").rows()
    return int(row["n"])
