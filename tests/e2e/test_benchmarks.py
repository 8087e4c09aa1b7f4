"""The benchmarks run, and what they time is right."""

import subprocess
import sys
from pathlib import Path

from benchmarks import query, social
from benchmarks.questions import QUESTIONS
from benchmarks.rounds import comparable


def test_ours_and_hand_written_sql_agree_on_all_nine_questions(tmp_path):
    made = social.write_graph(tmp_path / "graph", social.generate(social.Size(2_000)))
    askers = query.local(made)
    for number, question in QUESTIONS.items():
        answers = [comparable(ask(number, question)[1]) for ask in askers.values()]
        assert answers[0], question.title
        assert answers[0] == answers[1], question.title


def test_the_same_seed_makes_the_same_graph():
    size = social.Size(200)
    assert social.generate(size) == social.generate(size)


def test_the_program_runs_without_peers():
    command = [sys.executable, "-m", "benchmarks.query", "--quick", "--no-peers"]
    root = Path(query.__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "9. paths of two hops, by the ages on the way" in done.stdout
    assert "wrong answer" not in done.stdout
