"""`omnigraph version`: the releases of Omnigraph, Lance and Python."""

from __future__ import annotations

from omnigraph.cli import options, render


def version(*, json: options.Json = False) -> None:
    """Print the versions of Omnigraph, Lance and Python."""
    import platform
    from importlib import metadata

    versions = {
        "omnigraph": metadata.version("omnigraph"),
        "lance": metadata.version("pylance"),
        "python": platform.python_version(),
    }
    if json:
        render.show_json(versions)
        return
    render.show_facts(versions)
