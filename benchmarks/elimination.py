"""Counting questions on Spark: with leaf elimination in the plan, and without."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from benchmarks import report
from benchmarks.questions import QUESTIONS
from benchmarks.rounds import Answer, Outcome, compete, rows_of, timed
from omnigraph import graph
from omnigraph.query.lowering import rows

NUMBERS: Final = ("8", "9")
WITH: Final = "Spark"
WITHOUT: Final = "Spark without elimination"


def run(made: graph.Graph, *, rounds: int) -> dict[str, dict[str, Outcome]]:
    """Both questions on both plans; the answers are compared."""
    # Each handle keeps its own lowered queries.
    plain = graph.open(made.uri)
    return {
        f"{number}. {QUESTIONS[number].title}": compete(
            {
                WITH: _asker(made, QUESTIONS[number].gq),
                WITHOUT: _unless_eliminated(_asker(plain, QUESTIONS[number].gq)),
            },
            rounds=min(rounds, 3),
            # Without elimination, every path is made: a minute for a question.
            warm_ups=1,
        )
        for number in NUMBERS
    }


def goals(asked: report.Outcomes) -> str:
    """A line for each question."""
    lines = []
    for title, outcomes in asked.items():
        if ratio := report.ratio_of(outcomes[WITH], outcomes[WITHOUT]):
            found = f"on Spark, question {title} takes {ratio:.2f} of the time without elimination"
            lines.append(report.goal(f"{found}; the goal is 0.3", WHY_MISSED, is_met=ratio <= 0.3))
    return "\n".join(lines)


WHY_MISSED: Final = "Most of a small job is planning it, and starting its tasks."


def _asker(made: graph.Graph, text: str) -> Callable[[], Answer]:
    return lambda: timed(lambda: made.query(text, engine="spark").arrow(), rows_of)


def _unless_eliminated(ask: Callable[[], Answer]) -> Callable[[], Answer]:
    def run_plain() -> Answer:
        with _no_elimination():
            return ask()

    return run_plain


@contextmanager
def _no_elimination() -> Iterator[None]:
    """Lower queries as if no variable could be eliminated."""
    with patch.object(rows, "eliminate", return_value=None):
        yield
