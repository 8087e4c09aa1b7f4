"""Traversals: resolves the edge type of a word, its direction and the types of its ends."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.limits import HOPS_MAX
from omnigraph.model.names import TypeName
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.scope import Scope, edge_type
from omnigraph.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class _Step:
    """A traversal and the edge type that its word names."""

    syntax: ast.Traversal
    edge: EdgeType

    @property
    def chains(self) -> bool:
        """Whether one such edge can follow another."""
        return self.edge.source == self.edge.target


def resolve_traversals(
    traversals: Sequence[ast.Traversal], scope: Scope
) -> tuple[ir.Traversal, ...]:
    """Resolve the traversals of one block, whose bindings the scope already has.

    Unbound ends become variables of the scope. The known type of an end is used wherever it occurs
    in the text; where no end is known, the order of the text decides.
    """
    steps = [step for traversal in traversals if (step := _step(traversal, scope))]
    directions: dict[int, ir.Direction | None] = {}
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
    edge = edge_type(syntax.edge, scope.catalog, scope.report)
    _bind_edge(syntax, edge, scope)
    if edge is not None:
        return _Step(syntax, edge)
    for end in _named_ends(syntax):
        if not scope.binds(end.name) and end.name not in scope.parameters:
            scope.variables[end.name] = None
    return None


def _bind_edge(syntax: ast.Traversal, edge: EdgeType | None, scope: Scope) -> None:
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
    directions: dict[int, ir.Direction | None],
    steps_by_end: dict[str, list[int]],
    scope: Scope,
) -> Iterable[int]:
    """Decide one step's direction, bind its unbound ends, and return the steps that share those."""
    directions[at] = direction = _direction(step, scope)
    source, target = step.edge.source, step.edge.target
    types = (target, source) if direction is ir.Direction.IN else (source, target)
    affected_steps: list[int] = []
    for end, type_ in zip((step.syntax.source, step.syntax.destination), types, strict=True):
        if end.is_anonymous or end.name in scope.parameters or scope.binds(end.name):
            continue
        scope.variables[end.name] = scope.catalog.node_type(type_) if direction else None
        affected_steps += steps_by_end[end.name]
    return affected_steps


def _direction(step: _Step, scope: Scope) -> ir.Direction | None:
    syntax, edge = step.syntax, step.edge
    if any(end.name in scope.parameters for end in _named_ends(syntax)):
        for end in _named_ends(syntax):
            if end.name in scope.parameters:
                message = f"${end.name} is a parameter, and an edge joins nodes"
                hint = "bind a node, and compare its id with the parameter"
                scope.report.add(QueryCode.CONFLICTING_NAME, end.span, message, hint)
        return None
    ends = syntax.source, syntax.destination
    if _fit(ends, (edge.source, edge.target), scope):
        return ir.Direction.BOTH if syntax.undirected and step.chains else ir.Direction.OUT
    if _fit(ends, (edge.target, edge.source), scope):
        return ir.Direction.IN
    message = f"{edge.word} joins {edge.source} to {edge.target}; {_describe_ends(ends, scope)}"
    hint = "bind a variable to say what it is: $x: Type"
    scope.report.add(QueryCode.WRONG_END, syntax.edge.span, message, hint)
    return None


def _fit(ends: tuple[ast.Variable, ast.Variable], types: tuple[str, str], scope: Scope) -> bool:
    """Whether the ends may have these types; an unknown end may have any one type."""
    if ends[0] == ends[1] and not ends[0].is_anonymous and types[0] != types[1]:
        return False
    for end, type_ in zip(ends, types, strict=True):
        bound = None if end.is_anonymous else scope.bound_type(end.name)
        if bound is not None and not (isinstance(bound, NodeType) and bound.name == type_):
            return False
    return True


def _describe_ends(ends: tuple[ast.Variable, ast.Variable], scope: Scope) -> str:
    if ends[0] == ends[1]:
        return f"${ends[0].name} cannot be both"
    types = {end.name: scope.bound_type(end.name) for end in ends if not end.is_anonymous}
    return ", ".join(f"${name} is {type_.name}" for name, type_ in types.items() if type_)


def _resolve(step: _Step, direction: ir.Direction | None, scope: Scope) -> ir.Traversal | None:
    syntax, edge = step.syntax, step.edge
    if syntax.undirected and not step.chains:
        message = f"{edge.word} joins {edge.source} to {edge.target}, so it has a direction"
        hint = f"write {edge.word} without < and >"
        scope.report.add(QueryCode.UNDIRECTED, syntax.edge.span, message, hint)
    hops = _hops(step, scope)
    if direction is None or hops is None:
        return None
    source, target = edge.source, edge.target
    if direction is ir.Direction.IN:
        source, target = target, source
    return ir.Traversal(
        _end(syntax.source, source, scope),
        _end(syntax.destination, target, scope),
        TypeName(edge.name),
        direction,
        *hops,
        None if syntax.edge_variable is None else syntax.edge_variable.name,
    )


def _end(variable: ast.Variable, type_: str, scope: Scope) -> str | ir.Anonymous:
    if variable.is_anonymous:
        return ir.Anonymous(TypeName(type_))
    scope.bound_type(variable.name)
    return variable.name


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
    edge = step.edge
    if low > 1 and not step.chains:
        message = f"{edge.word} joins {edge.source} to {edge.target}: no second one can follow"
        return message, "leave the hops out"
    if high > 1 and step.chains and step.syntax.edge_variable is not None:
        return "an edge variable stands for one edge, so for one hop", "leave the hops out"
    return None


def _named_ends(syntax: ast.Traversal) -> list[ast.Variable]:
    return [end for end in (syntax.source, syntax.destination) if not end.is_anonymous]
