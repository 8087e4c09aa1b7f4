"""Cases: variables and edges of several types."""

from __future__ import annotations

from omnigraph.query.ir import Value
from tests.support.query_cases.case import CaseGraph, QueryCase, answer, ask
from tests.support.query_cases.graphs import edges

FORUM = CaseGraph(
    """
    interface Message { name: String @key  length: I64? }
    node Person { name: String @key }
    node Post implements Message { title: String?  size: I64? }
    node Comment implements Message { size: String? }
    edge Wrote: Person -> Post { at: I64? }
    edge Said: Person -> Comment { at: I64?  where: String? }
    edge Knows: Person -> Person { at: I64 }
    edge Follows: Person -> Person { at: I64 }
    edge About: Comment -> Post
    edge Answers: Comment -> Comment
    """,
    {
        "Person": [{"name": name} for name in ("ada", "bob", "cy", "dee")],
        "Post": [{"name": "m1", "length": 5, "title": "t", "size": 1}, {"name": "m2"}],
        "Comment": [
            {"name": "m1", "length": 7, "size": "big"},
            {"name": "m3", "length": 5},
            {"name": "m4"},
        ],
        "Wrote": [
            {"id": "w1", "src": "ada", "dst": "m1", "at": 1},
            {"id": "w2", "src": "ada", "dst": "m1", "at": 4},
            {"id": "w3", "src": "bob", "dst": "m2"},
        ],
        "Said": [
            {"id": "w1", "src": "ada", "dst": "m1", "at": 2, "where": "x"},
            {"id": "s2", "src": "bob", "dst": "m3", "at": 3},
            {"id": "s3", "src": "cy", "dst": "m4"},
        ],
        "Knows": [{**edge, "at": 1} for edge in edges("ada>bob bob>cy")],
        "Follows": [{**edge, "at": 2} for edge in edges("ada>bob ada>cy cy>dee dee>dee")],
        "About": edges("m1>m1 m3>m1 m4>m2"),
        "Answers": edges("m3>m1 m4>m3"),
    },
)
"""A post and a comment called m1; a post written and a comment said by edges called w1."""


def messages(title: str, clauses: str, *rows: Value | tuple[Value, ...]) -> QueryCase:
    """Which messages meet the clauses: the type and the id of each."""
    body = f"match {{ {clauses} }} return {{ type($m) as type $m.id as id }}"
    return ask(title, FORUM, body, answer("type id", *rows))


def values_of_messages(binding: str) -> QueryCase:
    """Values of edges that start only at comments, for messages of both types."""
    return ask(
        f"values of edges that fit one type of {binding}",
        FORUM,
        f"match {{ {binding} }} return {{ type($m) as t $m.id as id count {{ $m about $_ }} as n "
        "exists { $m about $_ } as e sum { $m about $x  $x.size } as s }",
        answer(
            "t id n e s",
            ("Comment", "m1", 1, True, 1),
            ("Comment", "m3", 1, True, 1),
            ("Comment", "m4", 1, True, None),
            ("Post", "m1", 0, False, None),
            ("Post", "m2", 0, False, None),
        ),
    )


def optional_counts(binding: str) -> QueryCase:
    """The number of edges that start only at comments, as an optional part."""
    return ask(
        f"an optional part that fits one type of {binding}",
        FORUM,
        f"match {{ {binding} optional {{ $m answers $x }} }} "
        "return { type($m) as t $m.id as id count($x) as n }",
        answer(
            "t id n",
            ("Comment", "m1", 0),
            ("Comment", "m3", 1),
            ("Comment", "m4", 1),
            ("Post", "m1", 0),
            ("Post", "m2", 0),
        ),
    )


CASES = (
    *map(values_of_messages, ("$m: Post | Comment", "$m: Message")),
    *map(optional_counts, ("$m: Post | Comment", "$m: Message")),
    messages(
        "either type",
        "$m: Post | Comment",
        ("Comment", "m1"),
        ("Comment", "m3"),
        ("Comment", "m4"),
        ("Post", "m1"),
        ("Post", "m2"),
    ),
    messages(
        "an interface is all that implement it",
        "$m: Message $m.length < 7",
        ("Comment", "m3"),
        ("Post", "m1"),
    ),
    messages("a type twice is once", "$m: Post | Post", ("Post", "m1"), ("Post", "m2")),
    messages(
        "properties of a binding", "$m: Message {length: 5}", ("Comment", "m3"), ("Post", "m1")
    ),
    messages("an id of either", '$m: Message $m.id = "m1"', ("Comment", "m1"), ("Post", "m1")),
    messages("a key of either", '$m: Message {name: "m1"}', ("Comment", "m1"), ("Post", "m1")),
    messages("a type of them", '$m: Message type($m) = "Post"', ("Post", "m1"), ("Post", "m2")),
    messages(
        "an edge that only one type has",
        "$m: Message $m about $_",
        *[("Comment", f"m{n}") for n in (1, 3, 4)],
    ),
    messages(
        "edges of either type",
        '$p: Person {name: "ada"} $p wrote|said $m',
        ("Comment", "m1"),
        ("Post", "m1"),
    ),
    messages(
        "each edge has the direction that its types decide",
        '$m: Post | Comment $c: Comment {name: "m3"} $c about|answers $m',
        ("Comment", "m1"),
        ("Post", "m1"),
    ),
    messages("who says nothing", "$m: Message not { $m wrote|said $_ }"),
    messages(
        "what nobody answers",
        "$m: Message not { $_ about|answers $m }",
        ("Comment", "m4"),
    ),
    messages(
        "the same message",
        '$p: Person {name: "ada"} $p wrote|said $m $o: Message {length: 7} $m = $o',
        ("Comment", "m1"),
    ),
    messages(
        "the same as one type",
        "$c: Comment $m: Message $c answers $o $m = $o",
        ("Comment", "m1"),
        ("Comment", "m3"),
    ),
    messages(
        "another message of the same name",
        "$m: Message $o: Message $m != $o $m.name = $o.name",
        ("Comment", "m1"),
        ("Post", "m1"),
    ),
    ask(
        "a bare variable says its type",
        FORUM,
        "match { $p: Person $p wrote|said $m } return { $p $m }",
        answer(
            "p m",
            ("ada", "Comment:m1"),
            ("bob", "Comment:m3"),
            ("cy", "Comment:m4"),
            ("ada", "Post:m1"),
            ("bob", "Post:m2"),
        ),
    ),
    ask(
        "all properties that they share, and their type",
        FORUM,
        "match { $m: Message $m.length is not null } return { $m.* }",
        answer(
            "type(m) m.name m.length",
            ("Comment", "m1", 7),
            ("Comment", "m3", 5),
            ("Post", "m1", 5),
        ),
    ),
    ask(
        "an object says its type",
        FORUM,
        "match { $m: Message $m.length = 5 } return { $m {.*} as m }",
        answer(
            "m",
            {"type": "Comment", "name": "m3", "length": 5},
            {"type": "Post", "name": "m1", "length": 5},
        ),
    ),
    ask(
        "parallel edges of two types are one pair",
        FORUM,
        "match { $a knows|follows $b } return { $a $b }",
        answer("a b", ("ada", "bob"), ("ada", "cy"), ("bob", "cy"), ("cy", "dee"), ("dee", "dee")),
    ),
    ask(
        "either edge in either direction",
        FORUM,
        'match { $a: Person {name: "cy"} $a <knows|follows> $b } return { $b }',
        answer("b", "ada", "bob", "dee"),
    ),
    ask(
        "a walk over edges of two types",
        FORUM,
        'match { $a: Person {name: "bob"} $a knows|follows{1,3} $b } return { $b }',
        answer("b", "cy", "dee"),
    ),
    ask(
        "a walk to one of several types",
        FORUM,
        'match { $m: Message {name: "m1"} $c answers{1,2} $m } return { $c $m }',
        answer("c m", ("m3", "Comment:m1"), ("m4", "Comment:m1")),
    ),
    ask(
        "bound edges of two types, with what they share",
        FORUM,
        "match { $p $e:wrote|said $m } return { $e $e.at type($e) as type $m.id as m }",
        answer(
            "e e.at type m",
            ("Said:s2", 3, "Said", "m3"),
            ("Said:s3", None, "Said", "m4"),
            ("Said:w1", 2, "Said", "m1"),
            ("Wrote:w1", 1, "Wrote", "m1"),
            ("Wrote:w2", 4, "Wrote", "m1"),
            ("Wrote:w3", None, "Wrote", "m2"),
        ),
    ),
    ask(
        "messages of each person, be there none",
        FORUM,
        "match { $p: Person optional { $p wrote|said $m } } "
        "return { $p count($m) as n sum($m.length) as s count(distinct $m.name) as names }",
        answer(
            "p n s names",
            ("ada", 2, 12, 1),
            ("bob", 2, 5, 2),
            ("cy", 1, None, 1),
            ("dee", 0, None, 0),
        ),
    ),
    ask(
        "counts by type",
        FORUM,
        "match { $m: Message $p wrote|said $m } return { type($m) as type count($p) as n }",
        answer("type n", ("Comment", 3), ("Post", 2)),
    ),
    ask(
        "a type of what may not be there",
        FORUM,
        "match { $p: Person optional { $p wrote $w } optional { $p said|wrote $m } } "
        "return distinct { $p type($w) as w type($m) as m }",
        answer(
            "p w m",
            ("ada", "Post", "Comment"),
            ("ada", "Post", "Post"),
            ("bob", "Post", "Comment"),
            ("bob", "Post", "Post"),
            ("cy", None, "Comment"),
            ("dee", None, None),
        ),
    ),
    ask(
        "distinct messages are told apart by their types",
        FORUM,
        "match { $p $e:wrote|said $m } "
        "return { count(distinct $m) as n count(distinct $m.id) as ids }",
        answer("n ids", (5, 4)),
    ),
    ask(
        "anonymous ends of two types",
        FORUM,
        "match { $p wrote|said $_ } return { $p count(*) as n }",
        answer("p n", ("ada", 2), ("bob", 2), ("cy", 1)),
    ),
    ask(
        "paths over edges of two types are counted",
        FORUM,
        "match { $a knows|follows $b $b wrote|said $m } "
        "return { $a count($m) as n sum($m.length) as s }",
        answer("a n s", ("ada", 3, 5), ("bob", 1, None)),
    ),
)
