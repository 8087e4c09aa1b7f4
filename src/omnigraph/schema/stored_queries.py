"""The type whose rows are queries that a graph stores; it is in a schema once there is one."""

from __future__ import annotations

from typing import Final

from omnigraph.schema.catalog import Catalog, NodeType

STORED_QUERY: Final = "StoredQuery"
DECLARATION: Final = f"""node {STORED_QUERY} {{
  name: String @key
  text: String
}}
"""


def stores_queries(catalog: Catalog) -> bool:
    """Whether a schema declares the type.

    >>> from omnigraph.schema.parser import parse_schema
    >>> stores_queries(parse_schema(DECLARATION)), stores_queries(parse_schema("node A { }"))
    (True, False)
    """
    return any(node.name == STORED_QUERY for node in catalog.node_types)


def keep_declaration(text: str, new: Catalog, old: Catalog) -> str:
    """The text of a new schema, with the declaration that the old one has and the new one lacks.

    People keep their schemas in files that say nothing of stored queries: applying such a file
    must not drop them.
    """
    if stores_queries(new) or not stores_queries(old):
        return text
    # Imported here: most processes print no schema.
    from omnigraph.schema.printer import print_declaration

    declared = old.type_named(STORED_QUERY)
    assert isinstance(declared, NodeType), "only node types were looked at"
    return f"{text.rstrip()}\n\n{print_declaration(declared)}\n"
