"""What is said of lines that have no row: in words of the file, with what to write instead."""

import pytest

from omnigraph.integrity.violations import Violation
from omnigraph.load.shaping.envelopes import read_line
from omnigraph.schema.parser import parse_schema

TYPES = {
    each.name: each
    for each in parse_schema(
        "node Person { name: String @key } edge Knows: Person -> Person { since: Date? }"
    ).types
}
# fmt: off
REFUSED = [
    ('{"type": "Person", "name": "Ada"}',
     '"name" is beside "type", and properties go into "data"'),
    ('{"edge": "Knows", "from": "a", "to": "b", "since": "2024-01-31"}',
     '"since" is beside "edge", and properties go into "data"'),
    ('{"edge": "Knows", "src": "a", "dst": "b"}',
     '"src" is beside "edge", and the ends of an edge are "from" and "to"'),
    ('{"type": "Person", "dat": {"name": "Ada"}}', "did you mean data?"),
    ('{"type": "Person", "shoe": 43}', 'properties go into "data"'),
    ('{"name": "Ada"}', 'it has neither "type" nor "edge" (write {"type"'),
    ('{"type": "Person", "edge": "Knows"}', 'it has both "type" and "edge"'),
    ("[", "a list begins here (write one object a line, as jq -c '.[]' does)"),
    ('[{"type": "Person"}]', "a list begins here"),
    ("{", "an object begins here, and goes on (write one object a line, as jq -c . does)"),
]
# fmt: on


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_a_line_without_a_row_is_told_what_to_write(text: str, said: str) -> None:
    found = read_line(text, 1, TYPES, of_type=None, ignores_unknown=False)
    assert isinstance(found, Violation)
    assert said in found.message
    assert "envelope" not in f"{found.type_name} {found.properties} {found.message}"
