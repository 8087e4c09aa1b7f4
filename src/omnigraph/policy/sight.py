"""Sight: the types whose rows an actor may read, and results without those of all other types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

# Most handles have no policy, and hide nothing: what is filtered is imported where it is.
if TYPE_CHECKING:
    from omnigraph.evolution.results import SchemaResult
    from omnigraph.integrity.violations import IntegrityReport, Violation
    from omnigraph.load.results import LoadResult
    from omnigraph.maintenance.cleanup.results import CleanupResult, TableCleanup
    from omnigraph.maintenance.purge.results import HeldFiles, PurgeResult
    from omnigraph.maintenance.results import EmbedResult, IndexResult, OptimizeResult
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.merge.conflicts import Conflict
    from omnigraph.merge.outcomes import MergeOutcome
    from omnigraph.model.proposals import Proposal
    from omnigraph.mutation.results import MutationResult
    from omnigraph.schema.plan import SchemaPlan
    from omnigraph.schema.steps import SchemaStep

Value = TypeVar("Value")
Written = TypeVar("Written", "LoadResult", "MutationResult")

_WHY: Final = "chosen by the size of the work"
"""Why an engine was chosen by size, without the size: that counts rows of every type."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What an actor may see of the rows of some branches.

    Every result, violation, conflict, count and error that may be about rows of several types
    passes through here on its way to the actor (docs/decisions/0037).

    Attributes:
        sees: Whether the actor may read a type on all of these branches.
    """

    sees: Callable[[str], bool]

    def hidden(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the types that the actor may not read, by name."""
        return tuple(sorted(name for name in set(names) if not self.sees(name)))

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot without the tables of hidden types: these count rows, and writes."""
        hidden = self.hidden(key.type_name for key in snapshot.pins)
        dead = tuple(each for each in snapshot.tombstones if self.sees(each.key.type_name))
        if not hidden and len(dead) == len(snapshot.tombstones):
            return snapshot
        pins = {key: pin for key, pin in snapshot.pins.items() if key.type_name not in hidden}
        return replace(snapshot, pins=pins, tombstones=dead, hidden=hidden)

    @contextmanager
    def limit_violations(self) -> Iterator[None]:
        """Let the violations of a write say nothing about rows of hidden types."""
        if self is EVERYTHING:
            yield
            return
        from omnigraph.integrity.violations import IntegrityError

        try:
            yield
        except IntegrityError as error:
            if not self.hidden(error.types):
                raise
            shown = IntegrityError(self.report(error.report), hint=error.hint or "")
            raise _like(shown, error) from None

    @contextmanager
    def limit_conflicts(self, source: str, target: str, names: Iterable[str]) -> Iterator[None]:
        """Let the conflicts of a merge say nothing about rows of hidden types.

        Args:
            names: The types of both branches.
        """
        if self is EVERYTHING:
            yield
            return
        from omnigraph.merge.conflicts import MergeConflictError, refused

        try:
            yield
        except MergeConflictError as error:
            if not (hidden := self.hidden(names)):
                raise
            conflicts = self.conflicts(error.conflicts)
            count = _count(conflicts, error.conflicts, error.conflict_count)
            shown = refused(source, target, conflicts, count, hidden=hidden)
            raise _like(shown, error) from None

    def report(self, report: IntegrityReport) -> IntegrityReport:
        """A report without ids and values of hidden types: only which rules are broken, and where.

        A writer of a type knows its own rows by their places in the input.
        """
        from omnigraph.integrity.violations import IntegrityReport, Rule

        # Rows that are stored, and not those of the writer.
        stored = {
            breach
            for breach in report.counts
            if breach.rule is Rule.STRANDED and not self.sees(breach.type_name)
        }
        counts = {each: 1 if each in stored else count for each, count in report.counts.items()}
        shown = map(self.violation, report.violations)
        one_each = {each.breach: each for each in shown if each.breach in stored}
        others = (each for each in report.violations if each.breach not in stored)
        return IntegrityReport(counts, (*map(self.violation, others), *one_each.values()))

    def violation(self, violation: Violation) -> Violation:
        """A violation, of a hidden type without ids and values."""
        if self.sees(violation.type_name):
            return violation
        from omnigraph.integrity.violations import Violation

        message = f"a row breaks the rule {violation.breach}"
        return Violation(violation.breach, None, None, violation.origin, message)

    def conflicts(self, conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
        """The conflicts of types that the actor sees, and those of schemas."""
        from omnigraph.merge.conflicts import ConflictKind

        return tuple(
            self._conflict(each)
            for each in conflicts
            if each.kind is ConflictKind.SCHEMA or self.sees(each.type_name)
        )

    def _conflict(self, conflict: Conflict) -> Conflict:
        """A conflict without the edges of hidden types, and without their number of rows."""
        if not self.sees(conflict.type_name):
            message = f"{conflict.type_name}: the schemas, or hidden rows, do not allow the change"
            return replace(conflict, message=message)
        counts = {name: count for name, count in conflict.edge_counts.items() if self.sees(name)}
        return conflict if counts == conflict.edge_counts else conflict.with_edges(counts)

    def outcome(self, outcome: MergeOutcome, names: Iterable[str]) -> MergeOutcome:
        """The outcome of a merge.

        Args:
            names: The types of both branches.
        """
        if not (hidden := self.hidden(names)):
            return outcome
        conflicts = self.conflicts(outcome.conflicts)
        return replace(
            outcome,
            changes=self._seen(outcome.changes),
            conflicts=conflicts,
            conflict_count=_count(conflicts, outcome.conflicts, outcome.conflict_count),
            steps=self.steps(outcome.steps),
            why=_why(outcome.why),
            hidden=hidden,
        )

    def steps(self, steps: Iterable[SchemaStep]) -> tuple[SchemaStep, ...]:
        """Steps of a schema change, of hidden types without their numbers of rows."""
        return tuple(step if self._sees_step(step) else _without_rows(step) for step in steps)

    def _sees_step(self, step: SchemaStep) -> bool:
        return step.is_of_interface or self.sees(step.type_name)

    def plan(self, plan: SchemaPlan, hidden: tuple[str, ...]) -> SchemaPlan:
        """A plan of a schema change that was made without the row counts of hidden types."""
        return replace(plan, steps=self.steps(plan.steps), hidden=hidden) if hidden else plan

    def schema_result(self, result: SchemaResult) -> SchemaResult:
        """The result of a schema change."""
        hidden = self.hidden(type_.name for type_ in result.plan.old.types)
        return (
            replace(result, plan=self.plan(result.plan, hidden), why=_why(result.why))
            if hidden
            else result
        )

    def mutation(self, result: MutationResult) -> MutationResult:
        """The result of a mutation: rows of hidden types are not counted."""
        return self._counts(result)

    def load(self, result: LoadResult) -> LoadResult:
        """The result of a load: rows of hidden types are not counted."""
        return self._counts(result)

    def _counts(self, result: Written) -> Written:
        if not (hidden := self.hidden({*result.changes, *result.unchanged})):
            return result
        seen, unchanged = self._seen(result.changes), self._seen(result.unchanged)
        return replace(result, changes=seen, unchanged=unchanged, hidden=hidden)

    def optimize(self, result: OptimizeResult, names: Iterable[str]) -> OptimizeResult:
        """The result of an optimize.

        Args:
            names: The types of the branch.
        """
        if not (hidden := self.hidden(names)):
            return result
        shared = tuple(name for name in result.shared if name not in hidden)
        return replace(
            result,
            tables=self._seen(result.tables),
            shared=shared,
            why=_why(result.why),
            hidden=hidden,
        )

    def index(self, result: IndexResult, names: Iterable[str]) -> IndexResult:
        """The result of an index run.

        Args:
            names: The types of the branch.
        """
        if not (hidden := self.hidden(names)):
            return result
        return replace(
            result,
            built=self._seen(result.built),
            joined=self._seen(result.joined),
            removed=self._seen(result.removed),
            waiting=self._seen(result.waiting),
            why=_why(result.why),
            hidden=hidden,
        )

    def embedding(self, result: EmbedResult) -> EmbedResult:
        """The result of an embedding run."""
        names = {*result.embedded, *(each.type_name for each in result.status)}
        if not (hidden := self.hidden(names)):
            return result
        status = tuple(each for each in result.status if each.type_name not in hidden)
        embedded = self._seen(result.embedded)
        return replace(
            result, embedded=embedded, status=status, why=_why(result.why), hidden=hidden
        )

    def cleanup(self, result: CleanupResult, names: Iterable[str]) -> CleanupResult:
        """The result of a cleanup, without how much was stored and written of hidden types.

        Args:
            names: The types of the graph.
        """
        if not (hidden := self.hidden([*names, *filter(None, map(_type_of, result.versions))])):
            return result
        # The graph's own tables have no type.
        seen = (each for each in result.versions if _type_of(each) not in hidden)
        return replace(result, versions=tuple(seen), hidden=hidden)

    def purge(self, result: PurgeResult) -> PurgeResult:
        """The result of a purge, without how much is stored of hidden types."""
        rewrites = tuple(each for each in result.rewrites if self.sees(each.type_name))
        held = tuple(each for each in result.held if self.sees(_type_of(each)))
        names = (*(each.type_name for each in result.rewrites), *map(_type_of, result.held))
        cleanup = None if result.cleanup is None else self.cleanup(result.cleanup, names)
        hidden = self.hidden(names) if cleanup is None else cleanup.hidden
        return replace(result, rewrites=rewrites, held=held, cleanup=cleanup, hidden=hidden)

    def proposal(self, proposal: Proposal) -> Proposal:
        """A proposal without the comments on rows of hidden types."""
        comments = tuple(
            each for each in proposal.comments if each.row is None or self.sees(each.row.type_name)
        )
        if len(comments) == len(proposal.comments):
            return proposal
        return replace(proposal, comments=comments)

    def _seen(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: value for name, value in values.items() if self.sees(name)}


EVERYTHING: Final = Sight(lambda _: True)
"""The sight of everybody in a graph without a policy."""


def _count(shown: tuple[Conflict, ...], found: tuple[Conflict, ...], count: int) -> int:
    # Of very many conflicts only the first are known, and so only the types of those.
    return count if len(shown) == len(found) == count else len(shown)


def _type_of(table: TableCleanup | HeldFiles) -> str:
    """The type of a table that a cleanup lists; nothing of one that has none."""
    return table.name.partition(":")[2]


def _without_rows(step: SchemaStep) -> SchemaStep:
    if step.refusal is None:
        return replace(step, rows=0)
    reason = f"{step.type_name} is hidden, and may have rows"
    return replace(step, rows=0, refusal=replace(step.refusal, reason=reason))


def _why(text: str) -> str:
    return _WHY if any(map(str.isdigit, text)) else text


def _like(shown: Exception, error: Exception) -> Exception:
    for note in getattr(error, "__notes__", ()):
        shown.add_note(note)
    return shown
