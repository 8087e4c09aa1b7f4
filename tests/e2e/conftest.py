"""Fixtures of the end-to-end tests."""

from collections.abc import Callable
from functools import cache

import pytest
import typer.main

from omnigraph.cli.main import main
from tests.support.commands import Answer

# Otherwise made anew at each call, which takes longer than most commands do.
_all_commands = cache(typer.main.get_command)


@pytest.fixture
def here(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """The command run in this process, which is quick: for what needs no process of its own."""
    for name in ("OMNIGRAPH_STORE", "OMNIGRAPH_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(typer.main, "get_command", _all_commands)

    def run(*arguments: str) -> Answer:
        capsysbinary.readouterr()
        code = main(arguments)
        out, err = capsysbinary.readouterr()
        answer = Answer(code, out.decode(), err.decode())
        assert "Traceback" not in answer.err, answer.err
        return answer

    return run
