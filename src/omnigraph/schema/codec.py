"""Catalogs as canonical JSON: one text per meaning, and a digest of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from hashlib import sha256
from typing import Any, Final

from omnigraph.errors import ErrorCode, FormatError, InvalidInputError
from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    Declaration,
    EdgeType,
    Embed,
    Index,
    Interface,
    Length,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.index_options import options_of
from omnigraph.schema.resolve import catalog_of

FORMAT: Final = 1


def encode(catalog: Catalog) -> str:
    """The canonical JSON of a catalog: equal catalogs give equal text, on every machine.

    Fields with their default value are omitted, so a later release may add a field without
    changing the digest of a schema that does not use it.

    >>> encode(Catalog())
    '{"edge_types":[],"format":1,"interfaces":[],"node_types":[]}'
    """
    document = {
        "format": FORMAT,
        "interfaces": [_to_json(interface) for interface in catalog.interfaces],
        "node_types": [_to_json(node_type) for node_type in catalog.node_types],
        "edge_types": [_to_json(edge_type) for edge_type in catalog.edge_types],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(catalog: Catalog) -> str:
    """The SHA-256 of the canonical JSON, in hexadecimal."""
    return sha256(encode(catalog).encode()).hexdigest()


def decode(text: str) -> Catalog:
    """The catalog that `encode` wrote."""
    try:
        document = json.loads(text)
        version = document["format"]
        if version != FORMAT:
            message = f"the schema is in format {version}; this release reads {FORMAT}"
            raise FormatError(
                message,
                hint="upgrade omnigraph",
                code=ErrorCode.FORMAT_TOO_NEW,
                found=version,
                supported=FORMAT,
            )
        declarations: tuple[Declaration, ...] = (
            *map(_interface, document["interfaces"]),
            *map(_node_type, document["node_types"]),
            *map(_edge_type, document["edge_types"]),
        )
        return catalog_of(*declarations)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
        if isinstance(cause, InvalidInputError):
            raise
        message = "the text is not the JSON of a schema"
        raise InvalidInputError(message, code=ErrorCode.INVALID_SCHEMA) from cause


def _to_json(value: object) -> object:
    match value:
        case Scalar() | BlobType():
            return str(value)
        case ListType(item):
            return {"list": str(item)}
        case EnumType(values):
            return {"enum": list(values)}
        case VectorType(dimension):
            return {"vector": dimension}
        case date():
            return value.isoformat()
        case Index():
            return _index_to_json(value)
        case tuple():
            return [_to_json(item) for item in value]
        case Embed((source,), model):
            # As releases wrote it that knew one source only, so that digests stay.
            return {"source": source} | ({} if model is None else {"model": model})
        case _ if is_dataclass(value):
            return {
                field_.name: _to_json(getattr(value, field_.name))
                for field_ in fields(value)
                if getattr(value, field_.name) != field_.default
            }
        case _:
            return value


def _index_to_json(index: Index) -> object:
    """An index without options is the name of its property, as it was before there were any."""
    if index.options is None:
        return index.property
    return {"property": index.property, "options": _to_json(index.options)}


def _type(raw: str | Mapping[str, Any]) -> PropertyType:
    match raw:
        case str():
            return _base(raw)
        case {"list": item}:
            return ListType(_base(item))
        case {"enum": values}:
            return EnumType(tuple(values))
        case {"vector": int(dimension)}:
            return VectorType(dimension)
        case _:
            message = f"{raw!r} is not a type"
            raise ValueError(message)


def _base(raw: str) -> Scalar | BlobType:
    return BlobType() if raw == "Blob" else Scalar(raw)


def _annotations(raw: Mapping[str, Any]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            annotation["name"],
            annotation.get("value"),
            tuple((name, value) for name, value in annotation.get("arguments", ())),
        )
        for annotation in raw.get("annotations", ())
    )


def _property(raw: Mapping[str, Any]) -> Property:
    arguments = {
        **raw,
        "type": _type(raw["type"]),
        "embed": _embed(raw["embed"]) if "embed" in raw else None,
        "annotations": _annotations(raw),
    }
    return Property(**arguments)


def _index(raw: str | Mapping[str, Any]) -> Index:
    match raw:
        case str():
            return Index(raw)
        case {"property": str(name), "options": options}:
            return Index(name, options_of(options))
        case _:
            message = f"{raw!r} is not an index"
            raise ValueError(message)


def _embed(raw: Mapping[str, Any]) -> Embed:
    sources = (raw["source"],) if "source" in raw else tuple(raw["sources"])
    return Embed(sources, raw.get("model"))


def _members(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that every declaration has, with lists as tuples."""
    return {
        **raw,
        "properties": tuple(map(_property, raw.get("properties", ()))),
        "key": tuple(raw.get("key", ())),
        "uniques": tuple(map(tuple, raw.get("uniques", ()))),
        "indexes": tuple(map(_index, raw.get("indexes", ()))),
        "annotations": _annotations(raw),
    }


def _interface(raw: Mapping[str, Any]) -> Interface:
    return Interface(**_members(raw))


def _rules(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_members(raw),
        "ranges": tuple(Range(**fields) for fields in raw.get("ranges", ())),
        "checks": tuple(Check(**fields) for fields in raw.get("checks", ())),
        "lengths": tuple(Length(**fields) for fields in raw.get("lengths", ())),
    }


def _node_type(raw: Mapping[str, Any]) -> NodeType:
    return NodeType(**{**_rules(raw), "implements": tuple(raw.get("implements", ()))})


def _edge_type(raw: Mapping[str, Any]) -> EdgeType:
    cardinality = Cardinality(**raw.get("cardinality", {}))
    return EdgeType(**{**_rules(raw), "cardinality": cardinality})
