"""Every example of the README and of the guides does what its page says."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support import docs
from tests.support.commands import Stream, run_here
from tests.support.s3 import S3Server

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    *sorted(
        each for each in ROOT.glob("docs/**/*.md") if (ROOT / "docs/decisions") not in each.parents
    ),
]
NEW, OTHER, OLD = (f"01M7GC5A9QKCZHY9Q1JZB0D5T{each}" for each in range(3))
NOW, THEN = "2026-11-15 19:50:16", "2024-01-01 00:00:00"


@pytest.fixture
def lake(s3_bucket: str, s3_server: S3Server) -> str:
    """The bucket of the examples, in a store that is found by the environment."""
    assert s3_bucket
    return s3_server.create_bucket("lake")


def _name(page: Path) -> str:
    """The name of a page; one whose programs use Spark says so, and shares the session of tests."""
    name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    uses_spark = 'engine="spark")' in text or "sparkSession" in text
    return f"{name} on spark" if uses_spark else name


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_examples_of_a_page_print_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if _name(page).endswith("spark"):
        request.getfixturevalue("spark")
    if "$ omnigraph export s3://lake/" in page.read_text(encoding="utf-8"):
        request.getfixturevalue("lake")
    examples = docs.run_examples(page, tmp_path)
    wrong = [each for each in examples if not each.is_right]
    if wrong and os.environ.get("OMNIGRAPH_BLESS"):
        docs.bless(page, examples, tmp_path)
        return
    assert not wrong, "\n\n".join(map(str, wrong))


def differences(text: str, tmp_path: Path) -> list[str]:
    """What a page of this text gets wrong, one line of code each."""
    page = tmp_path / "page.md"
    page.write_text(text)
    folder = tmp_path / "folder"
    folder.mkdir()
    return [each.step.code for each in docs.run_examples(page, folder) if not each.is_right]


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        ("console\n$ echo one\none", []),
        ("console\n$ echo one\ntwo", ["echo one"]),
        ("console\n$ echo one", ["echo one"]),
        ("console\n$ echo one\none\nmore", ["echo one"]),
        ("console\n$ true\n$ echo two\nthree", ["echo two"]),
        ("console\n$ echo a lot\na … t", ["echo a lot"]),
        ("console\n$ echo a lot\na …t", []),
        ("console\n$ printf 'a\\nb\\n'\n…", ["printf 'a\\nb\\n'"]),
        ("console\n$ printf 'no end'\nno end", []),
        ("console\n$ echo talk >&2\ntalk", []),
        ("console\n$ pwd\n…", []),
        ("console\n$ cat file\nmade here\n$ cat file | tr a-z A-Z\nMADE HERE", []),
        ("console\n$ cat file\nmade here\n$ cat file\nnot this", ["cat file"]),
        ("console\n$ export X=1; cd /\n$ echo $X $PWD\n1 /", []),
        ("console\n$ (exit 3)\n$ echo $?\n3", []),
        ("console\n$ echo a \\\n    b\na b", []),
        ("console\n$ cat - | wc -c\n0", []),
        ("console\n$ make test\nnobody runs this", []),
        (f"console\n$ echo {NEW}\n{OLD}", []),
        (f"console\n$ echo {NEW}\n{OLD}\n$ echo {NEW}\n{OLD}", []),
        (f"console\n$ echo {NEW}\n{OLD}\n$ echo {NEW}\n{OTHER}", [f"echo {NEW}"]),
        (f"console\n$ echo {NEW} {OTHER}\n{OLD} {OLD}", [f"echo {NEW} {OTHER}"]),
        (f"console\n$ echo {NEW} {NEW}\n{OLD} …", []),
        (f"console\n$ echo {NOW}\n{THEN}", []),
        ("console\n$ exit", ["exit"]),
        ("python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```\n1", []),
        ("python\nprint(1)\n```\n\n```\n2", ["print(1)"]),
        ("python\nprint(1)", ["print(1)"]),
        ("python\nprint(1)\n```\nProse between.\n```\n1", ["print(1)"]),
        ("json\n{not run}", []),
    ],
)
def test_the_runner_can_fail(tmp_path: Path, block: str, wrong: list[str]) -> None:
    assert differences(f"Some prose.\n\n```{block}\n```\n", tmp_path) == wrong


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("pg\nnode Person { name: Strng }", "did you mean String?"),
        ("gq\nquery q() { match { $p: Person } return { $p } }", "no schema"),
        ("python\nraise OSError('planted')", "planted"),
    ],
)
def test_an_example_that_cannot_work_fails(tmp_path: Path, block: str, said: str) -> None:
    with pytest.raises((AssertionError, OSError), match=said.replace("?", r"\?")):
        differences(f"```{block}\n```\n", tmp_path)


def test_queries_are_held_to_the_schema_that_the_page_made(tmp_path: Path) -> None:
    schema = "```console\n$ cat a.pg\nnode Person { name: String @key }\n```\n"
    with pytest.raises(AssertionError, match="did you mean Person"):
        differences(
            f"{schema}```gq\nquery q() {{ match {{ $p: Persn }} return {{ $p }} }}\n```\n", tmp_path
        )


@pytest.mark.parametrize(
    "arguments",
    [["version", "--json"], ["snapshot", "--store", "nowhere"], ["query", "--fromat", "json"]],
)
def test_the_command_that_a_page_runs_says_what_the_installed_one_says(
    arguments: list[str],
) -> None:
    variables = {**os.environ, "COLUMNS": "60"}
    program = Path(sys.executable).with_name("omnigraph")
    installed = subprocess.run(
        [program, *arguments], capture_output=True, check=False, env=variables
    )
    out, err = Stream(), Stream()
    code = run_here(arguments, variables, out=out, err=err)

    assert (code, out.written()) == (installed.returncode, installed.stdout)
    assert err.written() == installed.stderr


def test_blessing_writes_what_is_printed_now(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\nthree\n$ pwd\n$ echo x\nx\n```\nEnd.\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    docs.bless(page, docs.run_examples(page, folder), folder)
    assert page.read_text() == "```console\n$ echo one\none\n$ pwd\n…\n$ echo x\nx\n```\nEnd.\n"
    assert all(each.is_right for each in docs.run_examples(page, folder))


def test_a_blessed_page_shows_one_session(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    said = f"$ echo {NEW} at {NOW} in $PWD\n{OLD} at {THEN} in …\n"
    page.write_text(f"```console\n$ echo {NEW}\n{OTHER}\n{said}```\n")
    docs.bless(page, docs.run_examples(page, tmp_path), tmp_path)
    said = f"$ echo {NEW} at {NOW} in $PWD\n{NEW} at {NOW} in …\n"
    assert page.read_text() == f"```console\n$ echo {NEW}\n{NEW}\n{said}```\n"
