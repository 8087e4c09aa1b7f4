"""Every rule by cases: a schema, what is committed, what is written, and what that breaks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from tests.contract.integrity.builders import POSITION, Change, Rows, put


@dataclass(frozen=True, slots=True)
class Case:
    """One delta, and all that it breaks: rule, type, properties, id and value."""

    schema: str
    change: Change
    broken: list[tuple[str, str, str, str | None, Any]] = field(default_factory=list)
    committed: Rows = field(default_factory=dict)


def node(id_: str, **values: Any) -> dict[str, Any]:
    return {"id": id_, **values}


def edge(id_: str, src: str | None, dst: str | None, **values: Any) -> dict[str, Any]:
    return {"id": id_, "src": src, "dst": dst, **values}


def at(line: int, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, POSITION: line}


NOON: Final = datetime(2024, 2, 29, 12, tzinfo=UTC)
P: Final = "node P { n: I64? }"
EMAIL: Final = "node P { mail: String? @unique }"
PAIR: Final = "node P { a: String?  b: I64?  @unique(a, b) }"
KNOWS: Final = "node P { } edge K: P -> P"
AB: Final = "node A { } node B { } edge L: A -> B"
FEW: Final = "node P { } edge K: P -> P @card(0..1)"
MUST: Final = "node P { } edge K: P -> P @card(1..2)"

VALUES: Final = {
    "a value may be null only where the schema says so": Case(
        "node P { a: String  b: String?  c: I64 }",
        put(P=[node("1", a=None, b=None, c=1), node("2", a="", b="x", c=None)]),
        [("required", "P", "a", "1", None), ("required", "P", "c", "2", None)],
    ),
    "an item of a list may not be null, whether or not the list may": Case(
        "node P { a: [String]  b: [I64]? }",
        put(P=[node("1", a=["x", None], b=[]), node("2", a=[], b=[None]), node("3", a=["x"])]),
        [("required", "P", "a", "1", None), ("required", "P", "b", "2", None)],
    ),
    "an edge without an end is no edge": Case(
        KNOWS,
        put(P=[node("a")], K=[edge("1", None, "a"), edge("2", "a", None)]),
        [("required", "K", "src", "1", None), ("required", "K", "dst", "2", None)],
    ),
    "an enum takes its own values, in their own case": Case(
        "node P { kind: enum(draft, in-review)? }",
        put(P=[node("1", kind="draft"), node("2", kind="Draft"), node("3"), node("4", kind="")]),
        [("enum", "P", "kind", "2", "Draft"), ("enum", "P", "kind", "4", "")],
    ),
    "a range has both its ends, and null is exempt": Case(
        "node P { n: I64?  @range(n, 1..9) }",
        put(P=[node("1", n=1), node("2", n=9), node("3", n=0), node("4", n=10), node("5")]),
        [("range", "P", "n", "3", 0), ("range", "P", "n", "4", 10)],
    ),
    "a range may be open above": Case(
        "node P { n: F64?  @range(n, 0.5..) }",
        put(P=[node("1", n=0.5), node("2", n=math.inf), node("3", n=0.4999999999999999)]),
        [("range", "P", "n", "3", 0.4999999999999999)],
    ),
    "a range may be open below": Case(
        "node P { n: F32?  @range(n, ..1) }",
        put(P=[node("1", n=-math.inf), node("2", n=1.0), node("3", n=1.0000001192092896)]),
        [("range", "P", "n", "3", 1.0000001192092896)],
    ),
    "a length counts characters, and null is exempt": Case(
        "node P { s: String?  @length(s, 1..3) }",
        put(
            P=[
                node("1", s=""),
                node("2", s="abc"),
                node("3", s="abcd"),
                # One code point of four bytes, and two that are drawn as one.
                node("4", s="\N{GRINNING FACE}\N{GRINNING FACE}\N{GRINNING FACE}"),
                node("5", s="e\N{COMBINING ACUTE ACCENT}e\N{COMBINING ACUTE ACCENT}"),
                node("6"),
                node("7", s=" \n\0"),
            ]
        ),
        [
            ("length", "P", "s", "1", ""),
            ("length", "P", "s", "3", "abcd"),
            ("length", "P", "s", "5", "e\N{COMBINING ACUTE ACCENT}e\N{COMBINING ACUTE ACCENT}"),
        ],
    ),
    "a length counts items, whatever they are": Case(
        "node P { s: [String]?  n: [I64]?  @length(s, 1..)  @length(n, ..2) }",
        put(
            P=[
                node("1", s=[], n=[]),
                node("2", s=["", ""], n=[1, 2, 3]),
                node("3"),
                node("4", s=["abcdef"], n=[1, 2]),
            ]
        ),
        [("length", "P", "s", "1", None), ("length", "P", "n", "2", None)],
    ),
    "NaN is in no range, open or not": Case(
        "node P { a: F64?  b: F32?  c: F64?  @range(a, 0..)  @range(b, ..1)  @range(c, 0..1) }",
        put(P=[node("1", a=math.nan), node("2", b=math.nan), node("3", c=math.nan)]),
        [
            ("range", "P", "a", "1", math.nan),
            ("range", "P", "b", "2", math.nan),
            ("range", "P", "c", "3", math.nan),
        ],
    ),
    "big numbers are compared as they are": Case(
        "node P { i: I64?  u: U64?  @range(i, ..9007199254740992)"
        "  @range(u, 18446744073709551615..) }",
        put(
            P=[
                node("1", i=2**53, u=2**64 - 1),
                node("2", i=2**53 + 1),
                node("3", u=2**64 - 2),
            ]
        ),
        [("range", "P", "i", "2", 2**53 + 1), ("range", "P", "u", "3", 2**64 - 2)],
    ),
    "days and instants have ranges too": Case(
        'node P { d: Date?  t: DateTime?  @range(d, "2024-01-01".."2024-12-31")'
        '  @range(t, "2024-02-29T12:00:00Z"..) }',
        put(
            P=[
                node("1", d=date(2024, 1, 1), t=NOON),
                node("2", d=date(2023, 12, 31), t=NOON - timedelta(microseconds=1)),
            ]
        ),
        [
            ("range", "P", "d", "2", date(2023, 12, 31)),
            ("range", "P", "t", "2", NOON - timedelta(microseconds=1)),
        ],
    ),
    "a check is found anywhere in the text, and null is exempt": Case(
        'node P { s: String?  @check(s, "b+c") }',
        put(P=[node("1", s="abbcd"), node("2", s="bd"), node("3"), node("4", s="")]),
        [("check", "P", "s", "2", "bd"), ("check", "P", "s", "4", "")],
    ),
    "all checks of one property count": Case(
        'node P { s: String  @check(s, "^a")  @check(s, "z$") }',
        put(P=[node("1", s="az"), node("2", s="a"), node("3", s="z"), node("4", s="az\n")]),
        [
            ("check", "P", "s", "3", "z"),
            ("check", "P", "s", "2", "a"),
            ("check", "P", "s", "4", "az\n"),
        ],
    ),
    "a vector has its length and finite numbers": Case(
        "node P { vector: Vector(2)? }",
        put(
            P=[
                node("1", vector=[1.0, 2.0]),
                node("2", vector=[1.0]),
                node("3", vector=[1.0, 2.0, 3.0]),
                node("4", vector=[math.nan, 0.0]),
                node("5", vector=[0.0, -math.inf]),
                node("6", vector=[0.0, None]),
                node("7"),
            ]
        ),
        [("type", "P", "vector", each, None) for each in "23456"],
    ),
    "a key needs finite numbers": Case(
        "node P { n: F64 @key }",
        put(P=[node("1", n=1.0), node("nan", n=math.nan), node("inf", n=math.inf)]),
        [("key", "P", "n", "inf", math.inf), ("key", "P", "n", "nan", math.nan)],
    ),
    "types of every kind without rules take what fits them": Case(
        "node P { a: Bool?  b: I32?  c: U32?  d: U64?  e: F32?  f: Date?  g: DateTime?"
        "  h: [DateTime]?  i: Blob?  j: [F64]? }",
        put(
            P=[
                node(
                    "1",
                    a=True,
                    b=-(2**31),
                    c=2**32 - 1,
                    d=2**64 - 1,
                    e=math.nan,
                    f=date(2024, 2, 29),
                    g=NOON,
                    h=[NOON],
                    i=b"\x00",
                    j=[math.nan, math.inf],
                ),
                node("2"),
            ]
        ),
    ),
    "properties may be called anything": Case(
        "node P { order: I64?  select: String?  origin: String?  n0: I64?  @range(order, 0..)"
        "  @unique(select, origin) }",
        put(
            P=[
                node("1", order=-1, select="x", origin="y"),
                node("2", select="x", origin="y", n0=1),
            ]
        ),
        [("range", "P", "order", "1", -1), ("unique", "P", "select,origin", "1", ("x", "y"))],
    ),
}

IDENTITY: Final = {
    "an id stands once in a delta, in any mode": Case(
        P,
        put(P=[at(1, node("a")), at(2, node("b")), at(3, node("a", n=1))]),
        [("key", "P", "id", "a", "a")],
    ),
    "an id stands once in an overwrite": Case(
        P, Change({"P": [node("a"), node("a")]}, overwrite=("P",)), [("key", "P", "id", "a", "a")]
    ),
    "an id of one type is free in another": Case(
        "node A { } node B { }", put(A=[node("1")], B=[node("1")])
    ),
    "appending an id that exists is a key conflict": Case(
        "node P { name: String @key }",
        Change({"P": [node("a", name="a"), node("b", name="b")]}, append=("P",)),
        [("exists", "P", "name", "a", "a")],
        {"P": [node("a", name="a")]},
    ),
    "appending what is deleted or overwritten is not": Case(
        P,
        Change({"P": [node("a"), node("b")]}, delete={"P": ["a"]}, append=("P",)),
        committed={"P": [node("a")]},
    ),
    "appending to what is overwritten is not": Case(
        P,
        Change({"P": [node("a")]}, overwrite=("P",), append=("P",)),
        committed={"P": [node("a")]},
    ),
    "merging an id that exists replaces the row": Case(
        P, put(P=[node("a", n=2)]), committed={"P": [node("a", n=1)]}
    ),
}

UNIQUES: Final = {
    "two equal values are refused, several nulls are not": Case(
        EMAIL,
        put(P=[node("a", mail="x"), node("b", mail="x"), node("c"), node("d")]),
        [("unique", "P", "mail", "a", "x")],
    ),
    "a committed value is taken": Case(
        EMAIL,
        put(P=[node("b", mail="x")]),
        [("unique", "P", "mail", "b", "x")],
        {"P": [node("a", mail="x")]},
    ),
    "a row may keep its own value": Case(
        EMAIL, put(P=[node("a", mail="x")]), committed={"P": [node("a", mail="x")]}
    ),
    "a value that its row gives up may be taken": Case(
        EMAIL,
        put(P=[node("a", mail="y"), node("b", mail="x")]),
        committed={"P": [node("a", mail="x")]},
    ),
    "two rows may swap their values": Case(
        EMAIL,
        put(P=[node("a", mail="y"), node("b", mail="x")]),
        committed={"P": [node("a", mail="x"), node("b", mail="y")]},
    ),
    "a value that is deleted may be taken": Case(
        EMAIL,
        Change({"P": [node("b", mail="x")]}, delete={"P": ["a"]}),
        committed={"P": [node("a", mail="x")]},
    ),
    "a value that is overwritten may be taken": Case(
        EMAIL,
        Change({"P": [node("b", mail="x")]}, overwrite=("P",)),
        committed={"P": [node("a", mail="x")]},
    ),
    "a row written twice does not compete with itself": Case(
        EMAIL,
        put(P=[node("a", mail="x"), node("a", mail="x")]),
        [("key", "P", "id", "a", "a")],
    ),
    "a tuple is shared as a whole, and a null in it exempts": Case(
        PAIR,
        put(
            P=[
                node("1", a="x", b=1),
                node("2", a="x", b=2),
                node("3", a="x"),
                node("4", a="x"),
                node("5", a="y", b=1),
                node("6", b=1),
                node("7", a="x", b=2),
            ]
        ),
        [("unique", "P", "a,b", "1", ("x", 1)), ("unique", "P", "a,b", "2", ("x", 2))],
        {"P": [node("0", a="x", b=1), node("9", a="z", b=1)]},
    ),
    "texts are equal when their characters are": Case(
        EMAIL,
        put(
            P=[
                node("1", mail="é"),
                node("2", mail="e\u0301"),
                node("3", mail="É"),
                node("4", mail="😀"),
            ]
        ),
        [("unique", "P", "mail", "4", "😀")],
        {"P": [node("0", mail="😀")]},
    ),
    "numbers are equal when they are exactly": Case(
        "node P { i: I64? @unique  u: U64? @unique }",
        put(P=[node("1", i=2**53, u=2**64 - 1), node("2", i=2**53 + 1, u=2**64 - 2)]),
        [("unique", "P", "u", "1", 2**64 - 1)],
        {"P": [node("0", u=2**64 - 1)]},
    ),
    "zero has no sign, and NaN is itself": Case(
        "node P { f: F64? @unique }",
        put(P=[node("1", f=-0.0), node("2", f=math.nan)]),
        [("unique", "P", "f", "1", 0.0), ("unique", "P", "f", "2", math.nan)],
        {"P": [node("a", f=0.0), node("b", f=math.nan)]},
    ),
    "edges may be unique by their ends": Case(
        "node P { } edge K: P -> P { w: I64?  @unique(src, dst) }",
        put(K=[edge("2", "a", "b"), edge("3", "b", "a"), edge("4", "b", "a")]),
        [("unique", "K", "src,dst", "2", ("a", "b")), ("unique", "K", "src,dst", "3", ("b", "a"))],
        {"P": [node("a"), node("b")], "K": [edge("1", "a", "b")]},
    ),
}

ENDS: Final = {
    "an edge may lead to a node of the same delta": Case(
        KNOWS, put(K=[edge("1", "a", "b")], P=[node("b"), node("a")])
    ),
    "an edge may lead to a committed node": Case(
        KNOWS, put(K=[edge("1", "a", "a")]), committed={"P": [node("a")]}
    ),
    "an edge may not lead to nothing": Case(
        AB,
        put(L=[edge("1", "x", "y"), edge("2", "a", "b"), edge("3", "b", "a")]),
        [
            ("endpoint", "L", "src", "1", "x"),
            ("endpoint", "L", "src", "3", "b"),
            ("endpoint", "L", "dst", "1", "y"),
            ("endpoint", "L", "dst", "3", "a"),
        ],
        {"A": [node("a")], "B": [node("b")]},
    ),
    "an edge may not lead to a node that the same delta deletes": Case(
        KNOWS,
        Change({"K": [edge("1", "a", "b")]}, delete={"P": ["b"]}),
        [("endpoint", "K", "dst", "1", "b")],
        {"P": [node("a"), node("b")]},
    ),
    "an edge may lead to a node that the same delta deletes and writes": Case(
        KNOWS,
        Change({"K": [edge("1", "a", "a")], "P": [node("a")]}, delete={"P": ["a"]}),
        committed={"P": [node("a")]},
    ),
    "an edge may not lead to a node that an overwrite leaves out": Case(
        KNOWS,
        Change({"K": [edge("1", "a", "b")], "P": [node("a")]}, overwrite=("P",)),
        [("endpoint", "K", "dst", "1", "b")],
        {"P": [node("a"), node("b")]},
    ),
    "deleting a node with its edges is right": Case(
        KNOWS,
        Change(delete={"P": ["a"], "K": ["1", "2"]}),
        committed={"P": [node("a"), node("b")], "K": [edge("1", "a", "b"), edge("2", "b", "a")]},
    ),
    "deleting a node strands its edges, in and out, of any type": Case(
        "node A { } node B { } edge L: A -> B edge M: B -> A",
        Change(delete={"A": ["a"]}),
        [("stranded", "L", "src", "1", "a"), ("stranded", "M", "dst", "2", "a")],
        {
            "A": [node("a")],
            "B": [node("a")],
            "L": [edge("1", "a", "a")],
            "M": [edge("2", "a", "a")],
        },
    ),
    "an edge that is led elsewhere is not stranded": Case(
        KNOWS,
        Change({"K": [edge("1", "b", "b")]}, delete={"P": ["a"]}),
        committed={"P": [node("a"), node("b")], "K": [edge("1", "a", "b")]},
    ),
    "an overwrite that leaves out a node in use is refused": Case(
        KNOWS,
        Change({"P": [node("a"), node("c")]}, overwrite=("P",)),
        [("stranded", "K", "dst", "1", "b")],
        {"P": [node("a"), node("b")], "K": [edge("1", "a", "b")]},
    ),
    "an overwrite that keeps the nodes in use is right": Case(
        AB,
        Change({"A": [node("a"), node("z")]}, overwrite=("A",)),
        committed={"A": [node("a"), node("x")], "B": [node("b")], "L": [edge("1", "a", "b")]},
    ),
    "an overwrite of nodes and edges leaves nothing to strand": Case(
        KNOWS,
        Change({"P": [node("c")]}, overwrite=("P", "K")),
        committed={"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "an overwrite with nothing empties the type": Case(
        KNOWS,
        Change(overwrite=("P",)),
        [("stranded", "K", "src", "1", "a"), ("stranded", "K", "dst", "1", "a")],
        {"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "deleting what does not exist changes nothing": Case(
        KNOWS, Change(delete={"P": ["x"], "K": ["y"]}), committed={"P": [node("a")]}
    ),
}

CARDINALITIES: Final = {
    "a second edge is one too many": Case(
        FEW,
        put(K=[edge("2", "a", "a")]),
        [("cardinality", "K", "src", "a", 2)],
        {"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "edges of one delta count together": Case(
        FEW,
        put(K=[edge("1", "a", "a"), edge("2", "a", "b"), edge("3", "b", "a")]),
        [("cardinality", "K", "src", "a", 2)],
        {"P": [node("a"), node("b")]},
    ),
    "an edge that is replaced counts once": Case(
        FEW,
        put(K=[edge("1", "a", "b")]),
        committed={"P": [node("a"), node("b")], "K": [edge("1", "a", "a")]},
    ),
    "an edge that is deleted makes room": Case(
        FEW,
        Change({"K": [edge("2", "a", "a")]}, delete={"K": ["1"]}),
        committed={"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "an edge that is overwritten makes room": Case(
        FEW,
        Change({"K": [edge("2", "a", "a")]}, overwrite=("K",)),
        committed={"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "two sources may swap their edges": Case(
        FEW,
        put(K=[edge("1", "b", "b"), edge("2", "a", "b")]),
        committed={"P": [node("a"), node("b")], "K": [edge("1", "a", "b"), edge("2", "b", "b")]},
    ),
    "an edge that moves counts for both its sources": Case(
        "node P { } edge K: P -> P @card(1..1)",
        put(K=[edge("1", "b", "a")]),
        [("cardinality", "K", "src", "b", 2), ("cardinality", "K", "src", "a", 0)],
        {"P": [node("a"), node("b")], "K": [edge("1", "a", "b"), edge("2", "b", "b")]},
    ),
    "a new node needs its edges": Case(
        MUST,
        put(P=[node("b"), node("c")], K=[edge("2", "b", "a")]),
        [("cardinality", "K", "src", "c", 0)],
        {"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "a node that is written again keeps its edges": Case(
        MUST, put(P=[node("a")]), committed={"P": [node("a")], "K": [edge("1", "a", "a")]}
    ),
    "the last edge of a node may not go": Case(
        MUST,
        Change(delete={"K": ["1", "2"]}),
        [("cardinality", "K", "src", "a", 0)],
        {
            "P": [node("a"), node("b")],
            "K": [edge("1", "a", "b"), edge("2", "b", "b"), edge("3", "b", "a")],
        },
    ),
    "the last edge of a node may go with it": Case(
        MUST,
        Change(delete={"P": ["a"], "K": ["1"]}),
        committed={"P": [node("a"), node("b")], "K": [edge("1", "a", "b"), edge("2", "b", "b")]},
    ),
    "edges that are overwritten are missed by every node": Case(
        MUST,
        Change({"K": [edge("9", "a", "b")]}, overwrite=("K",)),
        [("cardinality", "K", "src", "b", 0)],
        {"P": [node("a"), node("b")], "K": [edge("1", "a", "b"), edge("2", "b", "b")]},
    ),
    "nodes and edges may be overwritten together": Case(
        MUST,
        Change({"P": [node("c")], "K": [edge("1", "c", "c")]}, overwrite=("P", "K")),
        committed={"P": [node("a")], "K": [edge("1", "a", "a")]},
    ),
    "without an upper end any number is right": Case(
        KNOWS, put(P=[node("a")], K=[edge(str(each), "a", "a") for each in range(30)])
    ),
}

TOGETHER: Final = {
    "an empty delta breaks nothing": Case(KNOWS, Change(), committed={"P": [node("a")]}),
    "a delta of empty tables breaks nothing": Case(
        MUST, Change({"P": [], "K": []}, delete={"P": [], "K": []})
    ),
    "everything that is wrong is reported at once": Case(
        "node P { s: String @unique  n: I64?  @range(n, 0..9)  @check(s, \"^[a-z]+$\") }"
        " edge K: P -> P @card(0..1) { kind: enum(x, y) }",
        Change(
            {
                "P": [node("b", s="taken", n=10), node("c", s=None, n=-1), node("c", s="NO")],
                "K": [edge("2", "a", "nobody", kind="z"), edge("3", "b", "a", kind="x")],
            },
            delete={"P": ["d"]},
            append=("K",),
        ),
        [
            ("required", "P", "s", "c", None),
            ("range", "P", "n", "b", 10),
            ("range", "P", "n", "c", -1),
            ("check", "P", "s", "c", "NO"),
            ("enum", "K", "kind", "2", "z"),
            ("key", "P", "id", "c", "c"),
            ("unique", "P", "s", "b", "taken"),
            ("exists", "K", "id", "3", "3"),
            ("endpoint", "K", "dst", "2", "nobody"),
            ("stranded", "K", "dst", "1", "d"),
            ("cardinality", "K", "src", "a", 2),
        ],
        {
            "P": [node("a", s="taken"), node("d", s="d")],
            "K": [edge("1", "a", "d", kind="x"), edge("3", "d", "a", kind="y")],
        },
    ),
}  # fmt: skip

CASES: Final = {**VALUES, **IDENTITY, **UNIQUES, **ENDS, **CARDINALITIES, **TOGETHER}
