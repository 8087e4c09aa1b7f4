"""The small graph of the facade tests: three people, one city, edges that form a cycle."""

from typing import Any, Final

SCHEMA: Final = """
node Person { name: String @key  age: I32?  note: String? }
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
"""
PEOPLE: Final[list[dict[str, Any]]] = [
    {"name": "ada", "age": 36, "note": "it's"},
    {"name": "bob", "age": None, "note": None},
    {"name": "cy", "age": 7, "note": ""},
]
