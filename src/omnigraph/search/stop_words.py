"""Stop words of languages: those that a Lance index leaves out, and so do searches without one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from omnigraph.choices import Analyzer


@cache
def stop_words(language: Analyzer) -> frozenset[str]:
    """The words that a language leaves out, after their endings were removed.

    >>> "och" in stop_words(Analyzer.SWEDISH), "och" in stop_words(Analyzer.ENGLISH)
    (True, False)
    """
    return _every().get(language.name, frozenset())


@cache
def _every() -> dict[str, frozenset[str]]:
    """The stop words of each language, by its name in `Analyzer`: a section of the file each."""
    text = files(__package__).joinpath("stop_words.txt").read_text("utf-8")
    sections = (section.partition("]") for section in text.split("[")[1:])
    return {name: frozenset(words.split()) for name, _, words in sections}
