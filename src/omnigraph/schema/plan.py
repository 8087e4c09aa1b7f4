"""The plan of a schema change: every step from one catalog to another, before anything is done."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.lang.diagnostics import Severity
from omnigraph.model.brief import brief
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, Interface, SchemaType
from omnigraph.schema.change_codes import ChangeFinding
from omnigraph.schema.change_requests import PropertyPath, request_findings
from omnigraph.schema.constraint_steps import (
    constraint_steps,
    edge_steps,
    implementation_steps,
    new_edge_step,
    source_before,
)
from omnigraph.schema.matching import Matching
from omnigraph.schema.printer import print_declaration, print_header
from omnigraph.schema.property_steps import annotation_steps, description_steps, property_steps
from omnigraph.schema.rename_hints import match_by_hints
from omnigraph.schema.steps import Cost, RuleCheck, SchemaStep, StepKind
from omnigraph.schema.type_changes import ColumnChange, ColumnSource, TypeChange
from omnigraph.wording import describe_hidden

_NAMED_MAX: Final = 5
"""Refusals that a message shows; the error has all of them."""


class MigrationRefusedError(OmnigraphError):
    """The schema cannot be changed that way; nothing was changed.

    `steps` has the refused steps, `findings` what is wrong with hints and requests.
    """

    default_code = ErrorCode.MIGRATION_REFUSED

    def __init__(self, steps: Sequence[SchemaStep], findings: Sequence[ChangeFinding] = ()) -> None:
        self.steps = tuple(steps)
        self.findings = tuple(findings)
        super().__init__(
            _summary(self.steps, self.findings),
            hint="change the schema or the request, and retry; nothing was changed",
            steps=[step.to_json() for step in self.steps],
            findings=[finding.to_json() for finding in self.findings],
        )

    def __reduce__(self) -> tuple[object, ...]:
        # The attributes are included for the notes among them.
        return MigrationRefusedError, (self.steps, self.findings), vars(self)


def _summary(steps: Sequence[SchemaStep], findings: Sequence[ChangeFinding]) -> str:
    reasons = [str(finding) for finding in findings]
    reasons += [
        f"{step.refusal.code}: {step.refusal.reason} ({step.refusal.way})"
        for step in steps
        if step.refusal is not None
    ]
    lines = [f"  {reason}" for reason in reasons[:_NAMED_MAX]]
    if more := len(reasons) - len(lines):
        lines.append(f"  … and {more} more")
    return "\n".join(["the schema cannot be changed that way", *lines])


@brief
@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The steps from one schema to another, in the order of the new schema.

    Attributes:
        matching: What each type and property of the new schema continues.
        findings: Errors in hints and requests, and warnings. With a wrong hint there are no steps,
            since it is not known what continues what.
        tables: The columns of each type of the new schema after the change.
        hidden: The types that the actor may not read: their rows are not counted.
    """

    old: Catalog
    new: Catalog
    matching: Matching
    steps: tuple[SchemaStep, ...]
    findings: tuple[ChangeFinding, ...] = ()
    tables: Mapping[TableKey, tuple[ColumnChange, ...]] = field(default_factory=dict, hash=False)
    hidden: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the schemas have the same meaning. They may differ in their hints."""
        return not self.steps

    @property
    def refusals(self) -> tuple[SchemaStep, ...]:
        """The steps that are refused."""
        return tuple(step for step in self.steps if step.cost is Cost.REFUSED)

    @property
    def errors(self) -> tuple[ChangeFinding, ...]:
        """The findings that refuse the change."""
        return tuple(
            finding for finding in self.findings if finding.code.severity is Severity.ERROR
        )

    @property
    def warnings(self) -> tuple[ChangeFinding, ...]:
        """The findings that do not."""
        return tuple(
            finding for finding in self.findings if finding.code.severity is Severity.WARNING
        )

    @property
    def checks(self) -> tuple[RuleCheck, ...]:
        """Every rule to check on the result, once."""
        return tuple(dict.fromkeys(check for step in self.steps for check in step.checks))

    @property
    def changed_keys(self) -> frozenset[TableKey]:
        """The types of the old schema that change in any way, or are dropped."""
        changed = (
            old_key
            for key, old_key in self.matching.types.items()
            if self.new.type_of(key) != self.old.type_of(old_key)
        )
        dropped = (type_.table_key for type_ in self.matching.dropped_types(self.old))
        return frozenset((*changed, *dropped))

    @property
    def changed_types(self) -> frozenset[str]:
        """The types that any step is about, by their names in both schemas."""
        now = {step.type_name for step in self.steps if not step.is_of_interface}
        before = {old.type_name for key, old in self.matching.types.items() if key.type_name in now}
        return frozenset(now | before)

    def columns(self, type_: SchemaType) -> tuple[ColumnChange, ...]:
        """The columns of a type of the new schema, in order, and where each has its values from."""
        return self.tables[type_.table_key]

    def require_allowed(self) -> None:
        """Refuse a plan that cannot be carried out.

        Raises:
            MigrationRefusedError: a step is refused, or a hint or a request is wrong.
        """
        if self.refusals or self.errors:
            raise MigrationRefusedError(self.refusals, self.errors)

    def describe(self) -> str:
        """The findings and the steps with their costs, for people, one in each line."""
        steps = [step.describe_with_cost() for step in self.steps]
        if not steps and not self.errors:
            steps = ["the schema does not change"]
        notes = [describe_hidden(self.hidden)] if self.hidden else []
        return "\n".join([*map(str, self.findings), *steps, *notes])

    def to_json(self) -> dict[str, object]:
        """The plan as plain values that JSON can represent."""
        return {
            "allowed": not self.refusals and not self.errors,
            "seconds_estimated": round(sum(step.seconds_estimated for step in self.steps), 1),
            "steps": [step.to_json() for step in self.steps],
            "findings": [finding.to_json() for finding in self.findings],
            **({"hidden": list(self.hidden)} if self.hidden else {}),
        }


def plan_by_hints(
    old: Catalog,
    new: Catalog,
    *,
    row_counts: Mapping[TableKey, int],
    fills: Collection[PropertyPath] = (),
    conversions: Collection[PropertyPath] = (),
) -> SchemaPlan:
    """The plan of a change that a person wrote: names and `@rename_from` say what continues what.

    The arguments are those of `plan_change`.
    """
    matching, findings = match_by_hints(old, new)
    if any(finding.code.severity is Severity.ERROR for finding in findings):
        return SchemaPlan(old, new, matching, (), findings)
    plan = plan_change(
        old, new, matching, row_counts=row_counts, fills=fills, conversions=conversions
    )
    return replace(plan, findings=(*findings, *plan.findings))


def plan_change(
    old: Catalog,
    new: Catalog,
    matching: Matching,
    *,
    row_counts: Mapping[TableKey, int],
    fills: Collection[PropertyPath] = (),
    conversions: Collection[PropertyPath] = (),
) -> SchemaPlan:
    """Every step from one schema to another, with its cost. Nothing is read but the arguments.

    A type without rows accepts whatever a new type would. So counts of 0 for all types give the
    bare difference of two schemas, in which no step is refused.

    Args:
        row_counts: How many rows each type of the old schema has.
        fills: The new properties, as pairs of a type's and its own name, for which the caller has
            an expression that gives a value for each row.
        conversions: The properties whose values may be converted, though some may fail.
    """
    changes = {
        type_.table_key: _type_change(old, type_, matching, row_counts, fills, conversions)
        for type_ in new.types
        if type_.table_key in matching.types
    }
    steps = list(_interface_steps(old, new))
    for type_ in new.types:
        change = changes.get(type_.table_key)
        if change is None:
            steps.append(_new_type(type_, _source_rows(type_, matching, row_counts)))
        else:
            steps += _type_steps(change, new, matching)
    for type_ in matching.dropped_types(old):
        key = type_.table_key
        drop = SchemaStep(
            StepKind.DROP_TYPE, str(key), before=print_header(type_), rows=row_counts[key]
        )
        steps.append(drop)
    tables = {
        type_.table_key: changes[type_.table_key].columns()
        if type_.table_key in changes
        else _new_columns(type_)
        for type_ in new.types
    }
    findings = tuple(request_findings(new, changes, fills=fills, conversions=conversions))
    return SchemaPlan(old, new, matching, tuple(steps), findings, tables)


def _type_change(
    old: Catalog,
    new: SchemaType,
    matching: Matching,
    row_counts: Mapping[TableKey, int],
    fills: Collection[PropertyPath],
    conversions: Collection[PropertyPath],
) -> TypeChange:
    key = matching.types[new.table_key]
    return TypeChange(
        old.type_of(key),
        new,
        matching.properties[new.table_key],
        rows=row_counts[key],
        source_rows=_source_rows(new, matching, row_counts),
        fills=frozenset(name for type_name, name in fills if type_name == new.name),
        conversions=frozenset(name for type_name, name in conversions if type_name == new.name),
    )


def _source_rows(type_: SchemaType, matching: Matching, row_counts: Mapping[TableKey, int]) -> int:
    if not isinstance(type_, EdgeType):
        return 0
    source = source_before(matching, type_)
    return 0 if source is None else row_counts[source]


def _type_steps(change: TypeChange, new: Catalog, matching: Matching) -> Iterator[SchemaStep]:
    if change.old.name != change.new.name:
        yield change.step(StepKind.RENAME_TYPE, before=change.old.name, after=change.new.name)
    yield from edge_steps(change, matching)
    steps = [*property_steps(change), *constraint_steps(change)]
    yield from steps
    yield from implementation_steps(change, new, steps)
    yield from description_steps(change, None, change.old.description, change.new.description)
    yield from annotation_steps(change, None, change.old.annotations, change.new.annotations)


def _new_type(type_: SchemaType, source_rows: int) -> SchemaStep:
    step = SchemaStep(StepKind.ADD_TYPE, str(type_.table_key), after=print_header(type_))
    return new_edge_step(step, type_, source_rows) if isinstance(type_, EdgeType) else step


def _new_columns(type_: SchemaType) -> tuple[ColumnChange, ...]:
    ends = ENDPOINTS if isinstance(type_, EdgeType) else ()
    system = [ColumnChange(name, None, None, ColumnSource.NULLS) for name in ("id", *ends)]
    return (
        *system,
        *(
            ColumnChange(property_.name, property_, None, ColumnSource.NULLS)
            for property_ in type_.properties
        ),
    )


def _interface_steps(old: Catalog, new: Catalog) -> Iterator[SchemaStep]:
    """Interfaces have no rows and no identity: one of another name is another one."""
    before = {interface.name: _print_interface(interface) for interface in old.interfaces}
    after = {interface.name: _print_interface(interface) for interface in new.interfaces}
    for name, text in after.items():
        if name not in before:
            yield SchemaStep(StepKind.ADD_INTERFACE, f"interface:{name}", after=text)
        elif before[name] != text:
            key = f"interface:{name}"
            yield SchemaStep(StepKind.CHANGE_INTERFACE, key, before=before[name], after=text)
    for name, text in before.items():
        if name not in after:
            yield SchemaStep(StepKind.DROP_INTERFACE, f"interface:{name}", before=text)


def _print_interface(interface: Interface) -> str:
    """The declaration in one line, without hints: those are no part of its meaning."""
    properties = tuple(replace(property_, rename_from=None) for property_ in interface.properties)
    text = print_declaration(replace(interface, properties=properties))
    return " ".join(line.strip() for line in text.splitlines())
