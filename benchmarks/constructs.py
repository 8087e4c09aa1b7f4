"""What the language has grown by, each construct beside the SQL that one would write for it.

python -m benchmarks.constructs [--people N] [--quick]
"""

import argparse
import tempfile
from pathlib import Path
from typing import Final

from benchmarks import report, social
from benchmarks.questions import Asker, Question
from benchmarks.rounds import ROUNDS, Outcome, compete

GOAL: Final = 1.3

WHY_MISSED: Final = "Sums of counts are decimals of 38 digits, and ids are joined as texts."

CONSTRUCTS: Final = {
    "optional, counted": Question(
        "people, and who of them plays tennis",
        """query q() {
          match { $p: Person  optional { $p hasInterest $i  $i.name = "Tennis" } }
          return { $p.gender as gender, count(*) as people, count($i) as players } }""",
        """SELECT p.gender, count(*), count(t.src) FROM person p
           LEFT JOIN (SELECT h.src FROM has_interest h JOIN interest i ON i.id = h.dst
                      WHERE i.name = 'Tennis') t ON t.src = p.id
           GROUP BY p.gender ORDER BY p.gender""",
        "",
    ),
    "optional, listed": Question(
        "people of 30, and those of 18 whom they follow",
        """query q() {
          match { $p: Person {age: 30}  optional { $p follows $q  $q.age = 18 } }
          return { $p.id as person, $q.id as follows } order { person, follows } limit 500 }""",
        """SELECT p.id, t.dst FROM person p
           LEFT JOIN (SELECT f.src, f.dst FROM follows f JOIN person q ON q.id = f.dst
                      WHERE q.age = 18) t ON t.src = p.id
           WHERE p.age = 30 ORDER BY p.id, t.dst NULLS FIRST LIMIT 500""",
        "",
    ),
    "two types, walked": Question(
        "the cities and interests of most people",
        """query q() {
          match { $p livesIn|hasInterest $x }
          return { type($x) as type, $x.name as name, count($p) as people }
          order { people desc, type, name } limit 10 }""",
        """SELECT type, name, count(*) AS people FROM (
             SELECT 'City' AS type, c.name FROM lives_in l JOIN city c ON c.id = l.dst UNION ALL
             SELECT 'Interest', i.name FROM has_interest h JOIN interest i ON i.id = h.dst)
           GROUP BY type, name ORDER BY people DESC, type, name LIMIT 10""",
        "",
    ),
    "two types, bound": Question(
        "people and cities, and the greatest of their numbers",
        """query q() {
          match { $x: City | Person  $x.number >= 100 }
          return { type($x) as type, count($x) as rows, max($x.number) as most } }""",
        """SELECT type, count(*), max(number) FROM (
             SELECT 'City' AS type, number FROM city UNION ALL
             SELECT 'Person', number FROM person)
           WHERE number >= 100 GROUP BY type ORDER BY type""",
        "",
    ),
    "two types, computed": Question(
        "people and cities by the end of their numbers",
        """query q() {
          match { $x: City | Person  $x.number >= 100 }
          return { $x.number % 10 as last, count($x) as rows } }""",
        """SELECT number % 10 AS last, count(*) FROM (
             SELECT number FROM city UNION ALL SELECT number FROM person)
           WHERE number >= 100 GROUP BY last ORDER BY last""",
        "",
    ),
    "count { … }": Question(
        "who follows most",
        """query q() {
          match { $p: Person }
          return { $p.id as person, count { $p follows $_ } as n }
          order { n desc, person } limit 3 }""",
        """SELECT p.id, coalesce(f.n, 0) AS n FROM person p
           LEFT JOIN (SELECT src, count(*) AS n FROM follows GROUP BY src) f ON f.src = p.id
           ORDER BY n DESC, p.id LIMIT 3""",
        "",
    ),
    "exists { … } or": Question(
        "people who play tennis, or are old",
        """query q() {
          match { $p: Person  exists { $p hasInterest $i  $i.name = "Tennis" } or $p.age > 60 }
          return { count($p) as people } }""",
        """SELECT count(*) FROM person p WHERE p.age > 60 OR EXISTS (
             SELECT 1 FROM has_interest h JOIN interest i ON i.id = h.dst
             WHERE h.src = p.id AND i.name = 'Tennis')""",
        "",
    ),
    "sum { … }": Question(
        "people who follow younger ones on average, by city",
        """query q() {
          match { $p livesIn $c  avg { $p follows $q  $q.age } < $p.age }
          return { $c.id as city, count($p) as people } order { people desc, city } limit 5 }""",
        """SELECT l.dst AS city, count(*) AS people FROM person p
           JOIN lives_in l ON l.src = p.id
           JOIN (SELECT f.src, avg(q.age) AS age FROM follows f JOIN person q ON q.id = f.dst
                 GROUP BY f.src) t ON t.src = p.id
           WHERE t.age < p.age GROUP BY l.dst ORDER BY people DESC, city LIMIT 5""",
        "",
    ),
}


def main() -> None:
    """Run it, and print it."""
    from benchmarks.query import local

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="2,000 people: does it run at all?")
    given = parser.parse_args()
    if given.quick:
        given.people, given.rounds = 2_000, 1
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        rows = social.generate(social.Size(given.people))
        made = social.write_graph(Path(folder) / "graph", rows)
        print(run(local(made), rounds=given.rounds))


def run(askers: dict[str, Asker], *, rounds: int) -> str:
    """The section's text: ours, and SQL by hand over the same tables."""
    asked = {
        f"{construct}: {question.title}": _ask(askers, construct, question, rounds=rounds)
        for construct, question in CONSTRUCTS.items()
    }
    ours, by_hand = askers
    return "\n\n".join(
        [
            "### Constructs of the language, beside the SQL that one would write",
            goals(asked, ours, by_hand),
            f"Time divided by that of {by_hand}:",
            report.ratios(asked, to=by_hand),
            "Medians, for scale only:",
            report.times(asked),
        ]
    )


def _ask(
    askers: dict[str, Asker], construct: str, question: Question, *, rounds: int
) -> dict[str, Outcome]:
    contestants = {name: lambda ask=ask: ask(construct, question) for name, ask in askers.items()}
    return compete(contestants, rounds=rounds)


def goals(asked: report.Outcomes, ours: str, by_hand: str) -> str:
    """A line for the construct that costs most."""
    ratios = [
        (report.ratio_of(outcomes[ours], outcomes[by_hand]), title)
        for title, outcomes in asked.items()
    ]
    known = [(ratio, title) for ratio, title in ratios if ratio is not None]
    if len(known) < len(ratios):
        return "- missed: an answer was wrong, or there was none"
    worst, title = max(known)
    found = f"at worst {worst:.2f} times hand-written {by_hand} ({title}); the goal is {GOAL}"
    return report.goal(found, WHY_MISSED, is_met=worst <= GOAL)


if __name__ == "__main__":
    main()
