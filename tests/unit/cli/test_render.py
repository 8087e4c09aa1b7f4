"""What commands print besides their results."""

import sys
from typing import Any

from omnigraph.cli import render


def test_a_message_follows_what_was_printed_before_it(tmp_path: Any, monkeypatch: Any) -> None:
    """Standard output waits for more, unless it is a terminal; both may go to one file."""
    path = tmp_path / "both"
    with path.open("w") as stdout, path.open("a") as stderr:
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(sys, "stderr", stderr)
        stdout.write("the branch\n")
        render.say("deleted")
        assert path.read_text() == "the branch\ndeleted\n"
        monkeypatch.undo()
