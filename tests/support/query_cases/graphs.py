"""The graphs of the cases: small, and full of difficult values."""

from __future__ import annotations

from collections import Counter

from omnigraph.query.ir import Value
from tests.support.query_cases.case import CaseGraph

_PEOPLE_SCHEMA = """
node Person {
  name: String @key
  age: I64?
  city: String?
  team: enum(red, blue)?
  tags: [String]?
}
node Company {
  name: String @key
  size: U32?
}
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company { role: String? }
"""

PEOPLE = CaseGraph(
    _PEOPLE_SCHEMA,
    {
        "Person": [
            {"name": "ada", "age": 36, "city": "London", "team": "red", "tags": ("math", "code")},
            {"name": "bob", "city": "Paris", "team": "blue", "tags": ()},
            {"name": "cy", "age": 25},
            {"name": "dee", "age": 36, "city": "London", "tags": ("code",)},
            {"name": "eve", "team": "red", "tags": ("%", "a_b")},
        ],
        "Company": [
            {"name": "acme", "size": 30},
            {"name": "ada", "size": 1},
            {"name": "bell"},
        ],
        "Knows": [
            {"id": "k1", "src": "ada", "dst": "bob", "since": 2001},
            {"id": "k2", "src": "ada", "dst": "bob", "since": 2005},
            {"id": "k3", "src": "bob", "dst": "cy"},
            {"id": "k4", "src": "cy", "dst": "ada", "since": 2010},
            {"id": "k5", "src": "dee", "dst": "dee", "since": 1999},
            {"id": "k6", "src": "dee", "dst": "ada", "since": 2001},
        ],
        "WorksAt": [
            {"id": "w1", "src": "ada", "dst": "acme", "role": "dev"},
            {"id": "w2", "src": "bob", "dst": "acme"},
            {"id": "w3", "src": "ada", "dst": "bell", "role": "ops"},
            {"id": "w4", "src": "cy", "dst": "ada", "role": "dev"},
        ],
    },
)
"""A person and a company called ada; two edges from ada to bob; dee knows herself; eve nobody."""

NOBODY = CaseGraph(_PEOPLE_SCHEMA, {"Company": [{"name": "acme"}]})
"""A company without people."""


def edges(text: str) -> list[dict[str, Value]]:
    """Edges written `a>b`; the id of the second from a to b is `a>b#2`."""
    seen: Counter[str] = Counter()
    made: list[dict[str, Value]] = []
    for word in text.split():
        seen[word] += 1
        source, target = word.split(">")
        made.append({"id": f"{word}#{seen[word]}", "src": source, "dst": target})
    return made


SHAPES = CaseGraph(
    """
    node Spot { name: String @key }
    node Thing { name: String @key }
    edge To: Spot -> Spot
    edge Has: Spot -> Thing
    """,
    {
        "Spot": [{"name": name} for name in "abcdefghmnopqrstuxyz"],
        "Thing": [{"name": name} for name in "abcz"],
        "To": edges(
            """
            a>b b>c c>a
            d>e d>f e>g f>g
            s>t s>u t>u
            h>x x>x x>y
            p>q q>p
            m>n m>n n>o o>r
            """
        ),
        "Has": edges("a>b b>c c>a z>z"),
    },
)
"""A cycle, a diamond, a short cut, a loop, a pair both ways, and a chain with a double first link.

Things have the names of spots, and z has a thing of its own name.
"""


def values(**rows: dict[str, Value]) -> CaseGraph:
    """Nodes of a type that has a property of every type, by their names."""
    return CaseGraph(
        """
        node Value {
          name: String @key
          text: String?  flag: Bool?  kind: enum(low, mid, high)?
          i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
          day: Date?  at: DateTime?
          texts: [String]?  ints: [I64]?  floats: [F64]?  days: [Date]?
          vector: Vector(2)?
        }
        """,
        {"Value": [{"name": name, **row} for name, row in rows.items()]},
    )
