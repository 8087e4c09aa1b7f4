"""Fixtures of the end-to-end tests."""

from collections.abc import Callable

import pytest

from omnigraph.cli.main import main
from tests.support.commands import Answer


@pytest.fixture
def here(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """The command run in this process, which is quick: for what needs no process of its own."""
    for name in ("OMNIGRAPH_STORE", "OMNIGRAPH_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Answer:
        capsysbinary.readouterr()
        code = main(arguments)
        out, err = capsysbinary.readouterr()
        answer = Answer(code, out.decode(), err.decode())
        assert "Traceback" not in answer.err, answer.err
        return answer

    return run
