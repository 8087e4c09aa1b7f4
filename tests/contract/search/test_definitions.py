"""Our distances and phrases are those of Lance, so that its indexes find what we score."""

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import MatchQuery, PhraseQuery

from omnigraph.choices import Analyzer, Metric
from omnigraph.search.analysis import analyse, analyse_column, index_parameters
from omnigraph.search.distances import distances
from omnigraph.search.words import rows_with_phrase, similar_terms

DIMENSION = 24
TEXTS = (
    "the house of a graph",
    "house graph",
    "graph house",
    "a house on the graph",
    "graphs of houses of graphs",
    "house of cards, graph of lakes",
)


def ranked(path: Path, rows: pa.Table, query: np.ndarray, metric: Metric) -> dict[int, float]:
    dataset = lance.write_dataset(rows, str(path))
    nearest = {"column": "v", "q": query, "k": len(rows), "metric": metric.value}
    found = dataset.to_table(nearest=nearest, columns=["n", "_distance"])
    return dict(zip(found["n"].to_pylist(), found["_distance"].to_pylist(), strict=True))


@pytest.mark.parametrize("metric", Metric)
def test_distances_are_those_that_lance_reports(tmp_path, metric):
    draw = np.random.default_rng(17)
    numbers = draw.normal(size=(50, DIMENSION)).astype(np.float32)
    query = draw.normal(size=DIMENSION).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIMENSION)
    rows = pa.table({"n": range(50), "v": vectors})
    theirs = ranked(tmp_path / "rows", rows, query, metric)
    ours = distances(metric, vectors, [float(number) for number in query])
    assert [theirs[row] for row in range(50)] == pytest.approx(ours.tolist(), rel=1e-4, abs=1e-5)


def test_a_distance_depends_on_its_vector_alone():
    draw = np.random.default_rng(4)
    numbers = draw.normal(size=(3000, 256)).astype(np.float32)
    query = [float(number) for number in draw.normal(size=256)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 256)
    for metric in Metric:
        whole = distances(metric, vectors, query)
        for start, count in ((0, 1), (1, 2), (17, 100), (2999, 1)):
            part = distances(metric, vectors.slice(start, count), query)
            assert part.tolist() == whole[start : start + count].tolist()


@pytest.mark.parametrize("phrase", ["house of a graph", "house graph", "graph house", "a graph"])
def test_a_phrase_with_gaps_is_that_of_an_index(tmp_path, phrase):
    dataset = lance.write_dataset(pa.table({"t": TEXTS}), str(tmp_path / "rows"))
    parameters: dict[str, Any] = {**index_parameters(Analyzer.ENGLISH)}
    dataset.create_scalar_index("t", "INVERTED", with_position=True, **parameters)
    theirs = dataset.to_table(full_text_query=PhraseQuery(phrase, "t"))["t"].to_pylist()
    column = analyse_column(Analyzer.ENGLISH, pa.array(TEXTS))
    ours = rows_with_phrase(column, analyse(Analyzer.ENGLISH, phrase))
    assert [TEXTS[row] for row in ours] == sorted(theirs, key=TEXTS.index)


@pytest.mark.parametrize("edits", [0, 1, 2])
def test_similar_words_are_those_of_an_index(tmp_path, edits):
    words = ["ab", "abc", "abcd", "abcde", "abcdef", "abcdefghij", "naïf"]
    dataset = lance.write_dataset(pa.table({"t": words}), str(tmp_path / "rows"))
    parameters: dict[str, Any] = {**index_parameters(Analyzer.SIMPLE)}
    dataset.create_scalar_index("t", "INVERTED", **parameters)
    column = analyse_column(Analyzer.SIMPLE, pa.array(words))
    for text in ("ax", "abx", "xbcdef", "abcxyf", "acbdef", "abcdefghxy", "naif", "abcdef"):
        query = MatchQuery(text, "t", fuzziness=edits)
        theirs = dataset.to_table(full_text_query=query)["t"].to_pylist()
        assert sorted(similar_terms(column.terms, text, edits)) == sorted(theirs)
