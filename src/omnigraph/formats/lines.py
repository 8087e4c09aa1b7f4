"""Lines: the rows of a type as NDJSON envelopes or as CSV, made a column at a time.

What is written reads back as the same value, and equal rows give equal bytes. Numbers that JSON
cannot represent are texts there, as in the rows of queries: `"NaN"`, `"Infinity"`, `"-Infinity"`.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, NodeType, SchemaType

_TEXT: Final = pa.large_utf8()
_NEWLINE: Final = "\n"
NOT_FINITE: Final = {
    "nan": "NaN",
    "-nan": "NaN",
    "inf": "Infinity",
    "-inf": "-Infinity",
}
"""The names of such numbers in Arrow and Python, and those in files."""


def envelope_lines(type_: SchemaType, batch: pa.RecordBatch) -> pa.Buffer:
    r"""One graph envelope per row, each with its newline.

    The id is in it where no key determines it. A null is written: without it, a load would set the
    default.

    >>> from omnigraph.schema.catalog import NodeType, Property
    >>> person = NodeType("Person", (Property("name", Scalar.STRING),), key=("name",))
    >>> envelope_lines(person, pa.record_batch({"id": ["Ada"], "name": ["Ada"]})).to_pybytes()
    b'{"type":"Person","data":{"name":"Ada"}}\n'
    """
    parts: list[str | pa.Array] = []

    def member(name: str, values: pa.Array) -> None:
        parts.extend([f"{json.dumps(name, ensure_ascii=False)}:", values, ","])

    match type_:
        case NodeType():
            parts.append(f'{{"type":{json.dumps(type_.name)},')
        case EdgeType():
            parts.append(f'{{"edge":{json.dumps(type_.name)},')
        case _:
            assert_never(type_)
    if not type_.key:
        member("id", _quote(batch.column("id")))
    if isinstance(type_, EdgeType):
        for name, end in zip(("from", "to"), ENDPOINTS, strict=True):
            member(name, _quote(batch.column(end)))
    parts.append('"data":{')
    for property_ in type_.properties:
        member(property_.name, json_values(batch.column(property_.name), property_.type))
    if type_.properties:
        parts.pop()
    parts.append("}}\n")
    return _join(parts, null="null")


def csv_header(schema: pa.Schema) -> bytes:
    """The names of the columns, quoted like every text."""
    return (",".join(f'"{name}"' for name in schema.names) + _NEWLINE).encode()


def csv_lines(type_: SchemaType, batch: pa.RecordBatch) -> pa.Buffer:
    """One line of CSV per row.

    Texts are quoted, so that the empty one differs from a null; lists are JSON.
    """
    types = {property_.name: property_.type for property_ in type_.properties}
    parts: list[str | pa.Array] = []
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        parts.extend([_csv_cells(values, types.get(name, Scalar.STRING)), ","])
    parts[-1] = _NEWLINE
    return _join(parts, null="")


def json_values(values: pa.Array, type_: PropertyType) -> pa.Array:
    """Each value as JSON text; a null stays null."""
    match type_:
        case Scalar():
            return _scalar_values(values, type_)
        case EnumType():
            return _quote(values)
        case ListType(item):
            return _format_lists(values, item)
        case VectorType():
            return _format_lists(values, Scalar.F32)
        case BlobType():
            return _enclose('"', _encode_blobs(values), '"')
        case _:
            assert_never(type_)


def _scalar_values(values: pa.Array, type_: Scalar) -> pa.Array:
    match type_:
        case Scalar.STRING:
            return _quote(values)
        case Scalar.BOOL | Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return values.cast(_TEXT)
        case Scalar.F32 | Scalar.F64:
            texts = _format_floats(values)
            return pc.if_else(pc.is_finite(values), texts, _enclose('"', texts, '"'))
        case Scalar.DATE:
            return _enclose('"', values.cast(_TEXT), '"')
        case Scalar.DATETIME:
            return _enclose('"', _format_instants(values), '"')
        case _:
            assert_never(type_)


def _csv_cells(values: pa.Array, type_: PropertyType) -> pa.Array:
    match type_:
        case Scalar.STRING | EnumType():
            return _quote_csv(values.cast(_TEXT))
        case ListType() | VectorType():
            return _quote_csv(json_values(values, type_))
        case Scalar.F32 | Scalar.F64:
            return _format_floats(values)
        case Scalar.DATE:
            return values.cast(_TEXT)
        case Scalar.DATETIME:
            return _format_instants(values)
        case BlobType():
            return _encode_blobs(values)
        case Scalar():
            return _scalar_values(values, type_)
        case _:
            assert_never(type_)


def _quote(values: pa.Array) -> pa.Array:
    texts = values.cast(_TEXT)
    if pc.any(pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')).as_py():
        for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
            texts = pc.replace_substring(texts, plain, escaped)
        controls = pc.match_substring_regex(texts, r"[\x00-\x1f]")
        if pc.any(controls).as_py():
            # Quotes, backslashes and newlines in them are escaped already.
            escaped_texts = [
                text.translate(_CONTROLS) for text in texts.filter(controls).to_pylist()
            ]
            mask = controls.fill_null(False)  # noqa: FBT003
            texts = pc.replace_with_mask(texts, mask, pa.array(escaped_texts, _TEXT))
    return _enclose('"', texts, '"')


_CONTROLS: Final = {number: json.dumps(chr(number))[1:-1] for number in range(0x20)}


def _quote_csv(texts: pa.Array) -> pa.Array:
    return _enclose('"', pc.replace_substring(texts, '"', '""'), '"')


def _format_floats(values: pa.Array) -> pa.Array:
    """The fewest digits that read back as the same number, always with a point or an exponent."""
    texts = values.cast(_TEXT)
    if values.type == pa.float32():
        # Readers make a double of the digits first. Rarely, the nearest F32 is then another one.
        read = texts.cast(pa.float64()).cast(pa.float32(), safe=False)
        lost = pc.not_equal(read, values)
        if pc.any(lost).as_py():
            exact = values.cast(pa.float64()).cast(_TEXT)
            texts = pc.if_else(lost, exact, texts)
    is_whole = pc.match_substring_regex(texts, "^-?[0-9]+$")
    texts = pc.if_else(is_whole, _enclose("", texts, ".0"), texts)
    if not pc.all(pc.is_finite(values)).as_py():
        for name, word in NOT_FINITE.items():
            texts = pc.if_else(pc.equal(texts, name), pa.scalar(word, _TEXT), texts)
    return texts


def _format_instants(values: pa.Array) -> pa.Array:
    """Microseconds only where there are some."""
    # Without a zone, which is UTC: Arrow then needs no database of zones to format it.
    exact = values.cast(pa.timestamp("us"))
    seconds = exact.cast(pa.timestamp("s"), safe=False)
    texts = seconds.cast(_TEXT)
    has_fraction = pc.not_equal(seconds.cast(pa.timestamp("us")), exact)
    if pc.any(has_fraction).as_py():
        texts = pc.if_else(has_fraction, exact.cast(_TEXT), texts)
    return _enclose("", pc.replace_substring(texts, " ", "T"), "Z")


def _encode_blobs(values: pa.Array) -> pa.Array:
    texts = [
        b"base64:" + b2a_base64(value.as_buffer(), newline=False) if value.is_valid else None
        for value in values
    ]
    return pa.array(texts, pa.large_binary()).cast(_TEXT)


def _format_lists(values: pa.Array, item: Scalar | BlobType) -> pa.Array:
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    first = values.offsets[0].as_py()
    count = values.offsets[-1].as_py() - first
    texts = json_values(values.values.slice(first, count), item).fill_null("null")
    offsets = pc.subtract(values.offsets, first)
    lists = pa.ListArray.from_arrays(offsets, texts, mask=values.is_null())
    return _enclose("[", pc.binary_join(lists, pa.scalar(",", _TEXT)), "]")


def _enclose(before: str, texts: pa.Array, after: str) -> pa.Array:
    nothing = pa.scalar("", _TEXT)
    return pc.binary_join_element_wise(
        pa.scalar(before, _TEXT), texts, pa.scalar(after, _TEXT), nothing
    )


def _join(parts: list[str | pa.Array], *, null: str) -> pa.Buffer:
    arrays = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    lines = pc.binary_join_element_wise(
        *arrays, pa.scalar("", _TEXT), null_handling="replace", null_replacement=null
    )
    _, offsets, data = lines.buffers()
    # The lines are adjacent: their bytes are those of the file.
    return data.slice(0, memoryview(offsets).cast("q")[len(lines)])
