"""Draws graphs, rows and schema changes for the model of `schema_model`."""

import json
from collections.abc import Collection
from dataclasses import replace
from itertools import count
from typing import Any, Final

from hypothesis import strategies as st

from tests.property.schema_model import (
    ARROW,
    DST,
    KEY,
    SRC,
    VALUES,
    WIDER,
    WITHOUT_DEFAULT,
    GraphModel,
    ModelProperty,
    ModelType,
    Row,
    change,
)

IDS: Final = ("x", "y", "z")
NAMES: Final = tuple("abcdefgh")
NODE_NAMES: Final = ("Ant", "Bee", "Cat", "Dog", "Eel")
EDGE_NAMES: Final = ("Eats", "Sees", "Hears", "Calls")
NODES_MAX, EDGES_MAX, PROPERTIES_MAX = 3, 2, 6


class Draws:
    """Draws for one example; numbers of types and properties are never used twice."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw
        self._numbers = count(KEY + 1)

    def first(self) -> GraphModel:
        """A schema of two node types and an edge type, without rows."""
        nodes = tuple(self._new_node(name) for name in NODE_NAMES[:2])
        types = (*nodes, self._new_edge(EDGE_NAMES[0], nodes))
        return GraphModel(types, {type_.number: {} for type_ in types})

    def pick(self, options: Collection[Any]) -> Any:
        return self._draw(st.sampled_from(list(options)))

    def row(self, model: GraphModel, type_: ModelType) -> tuple[str, Row] | None:
        """A row with its id; None if an edge has no nodes to join."""
        values: dict[int, Any] = {}
        if type_.ends:
            sources, targets = (list(model.rows[number]) for number in type_.ends)
            if not sources or not targets:
                return None
            values |= {SRC: self.pick(sources), DST: self.pick(targets)}
            id_ = json.dumps([values[SRC], values[DST]], separators=(",", ":"))
        else:
            id_ = self.pick(IDS)
        for one in type_.properties:
            strategy = VALUES[one.type]
            values[one.number] = self._draw(st.none() | strategy if one.nullable else strategy)
            if values[one.number] is None:
                # A load writes the default in the place of a null.
                values[one.number] = one.default
        return id_, values if type_.ends else values | {KEY: id_}

    def changed(self, model: GraphModel) -> GraphModel:
        """The graph after a schema change of any number of steps, which nulls may forbid."""
        used = {one.name for one in model.types}
        types = []
        for type_ in model.types:
            fate = self.pick(["keep", "keep", "change", "change", "change", "rename", "drop"])
            if fate == "drop":
                continue
            kept = type_ if fate == "keep" else self._changed_type(type_, model)
            if fate == "rename" and (name := self._free(type_, used)):
                kept = replace(kept, name=name)
                used.add(name)
            types.append(kept)
        present = {one.number for one in types}
        types = [one for one in types if not one.ends or present.issuperset(one.ends)]
        return change(model, tuple(self._with_new_types(types, used)))

    def renamed(self, model: GraphModel) -> GraphModel:
        """The graph with other names of types and properties."""
        used = {one.name for one in model.types}
        types = []
        for type_ in model.types:
            names = {one.name for one in type_.properties}
            members = []
            for one in type_.properties:
                free = [name for name in NAMES if name not in names]
                new = self.pick([one.name, free[0]]) if free else one.name
                names.add(new)
                members.append(replace(one, name=new))
            new_name = self.pick([type_.name, self._free(type_, used) or type_.name])
            used.add(new_name)
            types.append(replace(type_, name=new_name, properties=tuple(members)))
        return change(model, tuple(types))

    def _free(self, type_: ModelType, used: set[str]) -> str | None:
        names = [name for name in (EDGE_NAMES if type_.ends else NODE_NAMES) if name not in used]
        return names[0] if names else None

    def _with_new_types(self, types: list[ModelType], used: set[str]) -> list[ModelType]:
        nodes = tuple(one for one in types if not one.ends)
        free = [name for name in NODE_NAMES if name not in used]
        if not nodes or (len(nodes) < NODES_MAX and free and self.pick([False, False, True])):
            types = [*types, self._new_node(free[0])]
            nodes = (*nodes, types[-1])
        free = [name for name in EDGE_NAMES if name not in used]
        if len(types) - len(nodes) < EDGES_MAX and free and self.pick([False, False, True]):
            types = [*types, self._new_edge(free[0], nodes)]
        return types

    def _changed_type(self, type_: ModelType, model: GraphModel) -> ModelType:
        names = {one.name for one in type_.properties}
        members = []
        for one in type_.properties:
            fates = ["keep", "keep", "rename"] if one.is_key else FATES
            fate = self.pick(fates)
            if fate == "drop":
                continue
            changed_one = one if one.is_key else self._changed_property(one, fate)
            free = [name for name in NAMES if name not in names]
            if "rename" in fate and free:
                changed_one = replace(changed_one, name=self.pick(free))
                names.add(changed_one.name)
            members.append(changed_one)
        has_rows = bool(model.rows[type_.number])
        for _ in range(self.pick([0, 0, 1, 2])):
            free = [name for name in NAMES if name not in names]
            if free and len(members) < PROPERTIES_MAX:
                names.add(free[0])
                members.append(self._new_property(free[0], has_rows=has_rows))
        if self.pick([False, False, True]):
            members = list(self._draw(st.permutations(members)))
        return replace(type_, properties=tuple(members))

    def _changed_property(self, one: ModelProperty, fate: str) -> ModelProperty:
        if "widen" in fate and one.type in WIDER:
            # Its default is written in the new type, so there is none.
            one = replace(one, type=self.pick(WIDER[one.type]), default=None)
        if "null" in fate:
            one = replace(one, nullable=not one.nullable)
        if fate == "default" and one.type not in WITHOUT_DEFAULT:
            one = replace(one, default=self._draw(st.none() | VALUES[one.type]))
        return one

    def _new_property(self, name: str, *, has_rows: bool) -> ModelProperty:
        type_ = self.pick(ARROW)
        has_default = type_ not in WITHOUT_DEFAULT and self.pick([True, False])
        default = self._draw(VALUES[type_]) if has_default else None
        nullable = self.pick([True, False]) or (has_rows and default is None)
        return ModelProperty(next(self._numbers), name, type_, nullable, default)

    def _new_node(self, name: str) -> ModelType:
        key = ModelProperty(KEY, "k", "String")
        members = [self._new_property(name, has_rows=False) for name in NAMES[: self.pick([1, 3])]]
        return ModelType(next(self._numbers), name, (key, *members))

    def _new_edge(self, name: str, nodes: tuple[ModelType, ...]) -> ModelType:
        ends = self.pick(nodes).number, self.pick(nodes).number
        members = [self._new_property(name, has_rows=False) for name in NAMES[: self.pick([0, 1])]]
        return ModelType(next(self._numbers), name, tuple(members), ends)


FATES: Final = (
    *("keep", "keep", "rename", "drop", "widen", "null", "default"),
    *("rename, widen", "widen, null", "rename, null", "rename, widen, null"),
)
