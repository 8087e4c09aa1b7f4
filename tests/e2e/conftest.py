"""Fixtures of the end-to-end tests."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.commands import Answer, omnigraph


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """The command on a wide screen, with no graph or engine chosen by the environment."""
    for name in ("OMNIGRAPH_STORE", "OMNIGRAPH_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    return partial(omnigraph, env={"COLUMNS": "200"})
