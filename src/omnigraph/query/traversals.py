"""Traversals: resolves the edge type of a word, its direction and the types of its ends."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.limits import HOPS_MAX
from omnigraph.model.names import TypeName
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.paths import bind_path, check_path_ends, resolve_path
from omnigraph.query.scope import Scope, edge_type
from omnigraph.query.several import BoundType, SeveralTypes, is_node, names_of, together
from omnigraph.schema.catalog import EdgeType


@dataclass(frozen=True, slots=True)
class _Step:
    """A traversal and the edge types that its words name."""

    syntax: ast.Traversal
    edges: tuple[EdgeType, ...]

    @property
    def chains(self) -> bool:
        """Whether any of its edges can follow any other."""
        return len({end for edge in self.edges for end in (edge.source, edge.target)}) == 1

    @property
    def description(self) -> str:
        """What its edges join."""
        return ", ".join(f"{edge.word} joins {edge.source} to {edge.target}" for edge in self.edges)


_Directions = tuple[ir.Direction, ...]
"""The direction of each edge of a step."""


def resolve_traversals(
    traversals: Sequence[ast.Traversal], scope: Scope
) -> tuple[ir.Traversal, ...]:
    """Resolve the traversals of one block, whose bindings the scope already has.

    Unbound ends become variables of the scope. The known type of an end is used wherever it occurs
    in the text; where no end is known, the order of the text decides.
    """
    steps = [step for traversal in traversals if (step := _step(traversal, scope))]
    for traversal in traversals:
        check_path_ends(traversal, scope)
    directions: dict[int, _Directions | None] = {}
    steps_by_end: dict[str, list[int]] = defaultdict(list)
    for at, step in enumerate(steps):
        for end in _named_ends(step.syntax):
            steps_by_end[end.name].append(at)
    ready = deque(
        at
        for at, step in enumerate(steps)
        if any(scope.binds(end.name) for end in _named_ends(step.syntax))
    )
    # Steps with a known end have priority; the others follow in the order of the text.
    turns = deque(range(len(steps)))
    while turns:
        at = ready.popleft() if ready else turns.popleft()
        if at not in directions:
            ready += _resolve_direction(at, steps[at], directions, steps_by_end, scope)
    resolved = (_resolve(step, directions[at], scope) for at, step in enumerate(steps))
    return tuple(traversal for traversal in resolved if traversal is not None)


def _step(syntax: ast.Traversal, scope: Scope) -> _Step | None:
    found = [edge_type(word, scope.catalog, scope.report) for word in syntax.edges]
    edges = dict.fromkeys(edge for edge in found if edge is not None)
    bind_path(syntax, () if None in found else tuple(edges), scope)
    _bind_edge(syntax, together(edges) if len(edges) == len(set(found)) else None, scope)
    if None not in found:
        return _Step(syntax, tuple(edges))
    for end in _named_ends(syntax):
        if not scope.binds(end.name) and end.name not in scope.parameters:
            scope.variables[end.name] = None
    return None


def _bind_edge(syntax: ast.Traversal, edge: BoundType | None, scope: Scope) -> None:
    variable = syntax.edge_variable
    if variable is None:
        return
    name = variable.name
    if variable.is_anonymous:
        message, hint = "$_ binds nothing", f"leave it out: {syntax.edge.text}"
    elif name in scope.parameters:
        message, hint = f"${name} is a parameter", "give the edge another name"
    elif scope.binds(name):
        message, hint = f"${name} is bound already", "an edge is bound by one traversal only"
    else:
        scope.variables[name] = edge
        return
    scope.report.add(QueryCode.CONFLICTING_NAME, variable.span, message, hint)


def _resolve_direction(
    at: int,
    step: _Step,
    directions: dict[int, _Directions | None],
    steps_by_end: dict[str, list[int]],
    scope: Scope,
) -> Iterable[int]:
    """Decide one step's directions, bind its unbound ends, return the steps that share those."""
    directions[at] = decided = _directions(step, scope)
    affected_steps: list[int] = []
    for place, end in enumerate((step.syntax.source, step.syntax.destination)):
        if end.is_anonymous or end.name in scope.parameters or scope.binds(end.name):
            continue
        scope.variables[end.name] = None
        if decided is not None:
            types = (_end_types(*each)[place] for each in zip(step.edges, decided, strict=True))
            scope.variables[end.name] = together(map(scope.catalog.node_type, types))
        affected_steps += steps_by_end[end.name]
    return affected_steps


def _end_types(edge: EdgeType, direction: ir.Direction) -> tuple[str, str]:
    """The types of the traversal's source and destination."""
    ends = edge.source, edge.target
    return ends[::-1] if direction is ir.Direction.IN else ends


def _directions(step: _Step, scope: Scope) -> _Directions | None:
    syntax = step.syntax
    if any(end.name in scope.parameters for end in _named_ends(syntax)):
        for end in _named_ends(syntax):
            if end.name in scope.parameters:
                message = f"${end.name} is a parameter, and an edge joins nodes"
                hint = "bind a node, and compare its id with the parameter"
                scope.report.add(QueryCode.CONFLICTING_NAME, end.span, message, hint)
        return None
    found = [
        _direction(edge, word, step, scope)
        for edge, word in zip(step.edges, syntax.edges, strict=False)
    ]
    known = tuple(direction for direction in found if direction is not None)
    return known if len(known) == len(found) else None


def _direction(edge: EdgeType, word: ast.Name, step: _Step, scope: Scope) -> ir.Direction | None:
    ends = step.syntax.source, step.syntax.destination
    if _fit(ends, (edge.source, edge.target), scope):
        return ir.Direction.BOTH if step.syntax.undirected and step.chains else ir.Direction.OUT
    if _fit(ends, (edge.target, edge.source), scope):
        return ir.Direction.IN
    message = f"{edge.word} joins {edge.source} to {edge.target}; {_describe_ends(ends, scope)}"
    hint = "bind a variable to say what it is: $x: Type"
    scope.report.add(QueryCode.WRONG_END, word.span, message, hint)
    return None


def _fit(ends: tuple[ast.Variable, ast.Variable], types: tuple[str, str], scope: Scope) -> bool:
    """Whether the ends may have these types; an unknown end may have any one type."""
    if ends[0] == ends[1] and not ends[0].is_anonymous and types[0] != types[1]:
        return False
    for end, type_ in zip(ends, types, strict=True):
        bound = None if end.is_anonymous else scope.bound_type(end.name)
        if bound is not None and not (is_node(bound) and type_ in names_of(bound)):
            return False
    return True


def _describe_ends(ends: tuple[ast.Variable, ast.Variable], scope: Scope) -> str:
    if ends[0] == ends[1]:
        return f"${ends[0].name} cannot be both"
    types = {end.name: scope.bound_type(end.name) for end in ends if not end.is_anonymous}
    return ", ".join(f"${name} is {type_.name}" for name, type_ in types.items() if type_)


def _resolve(step: _Step, directions: _Directions | None, scope: Scope) -> ir.Traversal | None:
    syntax = step.syntax
    if syntax.undirected and not step.chains:
        message = f"{step.description}, so it has a direction"
        hint = f"write {syntax.edge.text} without < and >"
        if len(step.edges) > 1:
            message = (
                f"{step.description}: an undirected walk needs edges between nodes of one type"
            )
            hint = "leave < and > out"
        scope.report.add(QueryCode.UNDIRECTED, syntax.edge.span, message, hint)
    hops = _hops(step, scope)
    if directions is None or hops is None:
        return None
    is_one = len(step.edges) == 1 or step.chains
    path = resolve_path(syntax, hops[0], scope, is_one=is_one)
    walked = list(zip(step.edges, directions, strict=True))
    types = [_end_types(edge, direction) for edge, direction in walked]
    ends = (
        (syntax.source, [each[0] for each in types]),
        (syntax.destination, [each[1] for each in types]),
    )
    (source, source_labels), (destination, destination_labels) = (
        _end(variable, names, scope) for variable, names in ends
    )
    return ir.Traversal(
        source,
        destination,
        tuple(
            ir.EdgeStep(TypeName(edge.name), direction, first, second)
            for (edge, direction), first, second in zip(
                walked, source_labels, destination_labels, strict=True
            )
        ),
        *hops,
        None if syntax.edge_variable is None else syntax.edge_variable.name,
        path,
    )


def _end(
    variable: ast.Variable, types: Sequence[str], scope: Scope
) -> tuple[str | ir.Anonymous, list[TypeName | None]]:
    """An end, and the type that each edge gives it, if it may have several."""
    names = [TypeName(type_) for type_ in types]
    nothing: list[TypeName | None] = [None] * len(names)
    if variable.is_anonymous:
        first, *others = sorted(set(names))
        return ir.Anonymous(first, tuple(others)), [*names] if others else nothing
    bound = scope.bound_type(variable.name)
    return variable.name, [*names] if isinstance(bound, SeveralTypes) else nothing


def _hops(step: _Step, scope: Scope) -> tuple[int, int] | None:
    """The least and greatest number of hops; None if they are refused."""
    syntax = step.syntax.hops
    if syntax is None:
        return 1, 1
    fault = _hops_fault(step, syntax)
    if fault is not None:
        scope.report.add(QueryCode.HOPS, syntax.span, *fault)
        return None
    assert syntax.low is not None, "_hops_fault refuses what is missing"
    assert syntax.high is not None, "_hops_fault refuses what is missing"
    return syntax.low.value, syntax.high.value if step.chains else 1


def _hops_fault(step: _Step, hops: ast.Hops) -> tuple[str, str] | None:
    if hops.low is None or hops.high is None:
        return "hops need a least and a greatest number", "write {1,3}"
    low, high = hops.low.value, hops.high.value
    if low < 1:
        return "a walk has at least one hop", f"write {{1,{max(high, 1)}}}"
    if high < low:
        return f"no walk has at least {low} and at most {high} hops", f"write {{{high},{low}}}"
    if high > HOPS_MAX:
        return f"a walk has at most {HOPS_MAX} hops", ""
    if len(step.edges) > 1 and high > 1 and not step.chains:
        message = (
            f"{step.description}: a walk of several hops needs edges between nodes of one type"
        )
        return message, "leave the hops out"
    if low > 1 and not step.chains:
        return f"{step.description}: no second one can follow", "leave the hops out"
    if high > 1 and step.chains and step.syntax.edge_variable is not None:
        return "an edge variable stands for one edge, so for one hop", "leave the hops out"
    return None


def _named_ends(syntax: ast.Traversal) -> list[ast.Variable]:
    return [end for end in (syntax.source, syntax.destination) if not end.is_anonymous]
