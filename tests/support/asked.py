"""The small graph that facade tests ask: three people, one city, a circle of acquaintance."""

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
