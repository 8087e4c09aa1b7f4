"""A client that a generator of others makes from the OpenAPI document: it type-checks and works."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import httpx
import pytest

GENERATOR = "openapi-python-client==0.29.1"
PROGRAM = """
import sys
from omnigraph_client import AuthenticatedClient
from omnigraph_client.api.default import query
from omnigraph_client.models import QueryAnswer, QueryBody

url, token = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token) as client:
    text = "query q() { match { $p: Person } return { $p.name } }"
    answer = query.sync("world", client=client, body=QueryBody(query=text))
    assert isinstance(answer, QueryAnswer), answer
    print([row.additional_properties["p.name"] for row in answer.rows])
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_generated_client_type_checks_and_asks(served, tmp_path):
    document = httpx.get(f"{served.url}/openapi.json").json()
    document["info"]["title"] = "omnigraph"
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "config.yml").write_text("package_name_override: omnigraph_client\n")
    python = _generator(tmp_path)
    generate = ["generate", "--path", "openapi.json", "--config", "config.yml", "--meta", "none"]
    _run(
        [python, "-m", "openapi_python_client", *generate, "--output-path", "omnigraph_client"],
        tmp_path,
    )
    (tmp_path / "ask.py").write_text(PROGRAM)

    _run([sys.executable, "-m", "mypy", "--strict", "ask.py", "omnigraph_client"], tmp_path)
    said = _run([python, "ask.py", served.url, served.token], tmp_path)

    assert said == "['Ada']\n"


def _generator(folder: Path) -> Path:
    """A Python that has the generator, which needs another typer than the tests."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    _run([python, "-m", "pip", "install", "--quiet", GENERATOR], folder)
    return python


def _run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
