"""Cases: what is refused before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.query_cases.case import CaseGraph
from tests.support.query_cases.graphs import PEOPLE, SHAPES


@dataclass(frozen=True)
class RefusedQuery:
    """A query that does not compile, and the code of the rule that it breaks."""

    title: str
    on: CaseGraph
    clauses: str
    code: str

    def __str__(self) -> str:
        return self.title


@dataclass(frozen=True)
class RefusedValues:
    """Values that a query does not take, and what the refusal must say."""

    title: str
    takes: str
    said: str
    given: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.title


QUERIES = (
    RefusedQuery("a walk has at least one hop", SHAPES, "$s to{0,2} $t", "T8"),
    RefusedQuery("a walk is not longer at least than at most", SHAPES, "$s to{3,1} $t", "T8"),
    RefusedQuery("a walk has an end", SHAPES, "$s to{1,} $t", "T8"),
    RefusedQuery("a bound edge is one hop", SHAPES, "$s $k:to{1,2} $t", "T8"),
    RefusedQuery("an edge between types has a direction", SHAPES, "$s <has> $t", "T7"),
    RefusedQuery("a list is no item", PEOPLE, '$s: Person $s.tags contains ["a"]', "T10"),
    RefusedQuery("a list equals no list", PEOPLE, "$s: Person $s.tags = $s.tags", "T10"),
    RefusedQuery("a list inline is no item", PEOPLE, '$s: Person {tags: ["a"]}', "T10"),
    RefusedQuery("a variable has one type", PEOPLE, "$s: Person $s: Company", "T5"),
    RefusedQuery("an enum has no such value", PEOPLE, '$s: Person {team: "green"}', "T11"),
    RefusedQuery("a text is not a number", PEOPLE, '$s: Person $s.age = "36"', "T10"),
    RefusedQuery("nothing equals null", PEOPLE, "$s: Person {age: null}", "T15"),
    RefusedQuery("not uses an outer variable", PEOPLE, "$s: Person not { $c: Company }", "T9"),
)

VALUES = (
    RefusedValues("a parameter is missing", "$x: I64", r"\$x: I64 is missing"),
    RefusedValues("a parameter is null", "$x: I64", r"\$x: I64 may not be null", {"x": None}),
    RefusedValues("a parameter is ill-typed", "$x: I64", r"\$x: 2.5 is not", {"x": 2.5}),
    RefusedValues("a truth is no number", "$x: I64", r"\$x: true is not", {"x": True}),
    RefusedValues(
        "a parameter is unknown", "$x: I64", r"\$y: the query has no such", {"x": 1, "y": 1}
    ),
    RefusedValues("a number is too large", "$x: U32", r"\$x: the number", {"x": 2**32}),
)
