"""The key of a provider is nowhere: not in files, output, errors or logs."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import EmbeddingError
from tests.contract.embedding.test_writes import REMOTE, add
from tests.support.embedding_server import embedding_server

KEY = "sk-proj-n0tf0r0thers-8472913"


def test_a_key_is_in_no_file_no_output_no_error_and_no_log(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    uri = tmp_path / "graph.omni"
    with embedding_server() as server:
        graph = omnigraph.init(uri, schema=REMOTE)
        graph.settings.set("embedding.openai_url", server.url)
        add(graph, "a", "one")
        add(graph, "b", "two", embed="later")
        server.faults, server.refusal = [401, 401], f"Incorrect key {KEY}"
        with pytest.raises(EmbeddingError) as refused:
            graph.embeddings.run()
        seen += [repr(refused.value), str(refused.value)]
        with pytest.raises(omnigraph.InvalidParameterError) as stored:
            graph.settings.set("embedding.openai_key", KEY)
        seen.append(str(stored.value))
        for arguments in (
            ["settings", "list"],
            ["settings", "list", "--json"],
            ["settings", "set", "embedding.openai_key", KEY],
            ["--debug", "embed"],
            ["embed", "--json"],
            ["commit", "list", "--json"],
            ["recovery", "list", "--json"],
        ):
            done = _run(uri, arguments)
            seen += [done.stdout, done.stderr]
        assert server.keys == {f"Bearer {KEY}"}
    seen += [record.getMessage() for record in caplog.records]
    assert not [text for text in seen if KEY in text]
    files = [path for path in uri.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def _run(uri: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "omnigraph", *arguments],
        env={**os.environ, "OMNIGRAPH_STORE": str(uri)},
        capture_output=True,
        text=True,
        check=False,
    )
