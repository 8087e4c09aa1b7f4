/** Decisions about conflicts, as the server takes them. */

import type { ConflictAnswer, MergeAnswer } from "../api/wire";
import { parseJson } from "../api/json";

export type Decision = { take: "ours" | "theirs" } | { text: string; isNull: boolean };
export type Decisions = ReadonlyMap<string, Decision>;

/** What a conflict is about, as one text. */
export function placeOf(conflict: ConflictAnswer): string {
  return JSON.stringify([conflict.type, conflict.id, conflict.property, conflict.facet ?? null]);
}

/** Kinds that are broken rules: nobody changed the same thing, but together it is not allowed. */
const VIOLATIONS = new Set([
  "orphan_edge",
  "unique_violation",
  "cardinality_violation",
  "value_constraint_violation",
]);

export function isViolation(conflict: ConflictAnswer): boolean {
  return VIOLATIONS.has(conflict.kind);
}

/** Rows of both sides break a rule together, so that taking theirs would not say what happens to ours. */
export function mayTakeTheirs(conflict: ConflictAnswer): boolean {
  return conflict.kind !== "unique_violation" && conflict.kind !== "cardinality_violation";
}

/** Whether a merge would be refused for conflicts that its visitor may not see. */
export function hasHiddenConflicts(preview: MergeAnswer | null): boolean {
  return preview !== null && preview.outcome === "conflicted" && preview.conflict_count === 0;
}

/** A cell takes a value of neither side; a whole row and a schema do not. */
export function mayEdit(conflict: ConflictAnswer): boolean {
  return conflict.property !== null && conflict.id !== null;
}

/** Whether all known values of a cell are texts, so that what is typed is one, too. */
export function isTextual(conflict: ConflictAnswer): boolean {
  const known = [conflict.base, conflict.ours, conflict.theirs].filter((value) => value !== null && value !== undefined);
  return known.every((value) => typeof value === "string");
}

/** The list that the server takes, for conflicts that are decided. */
export function toResolutions(
  conflicts: readonly ConflictAnswer[],
  decisions: Decisions,
  rest: "ours" | "theirs" | null,
): Record<string, unknown>[] {
  const entries: Record<string, unknown>[] = [];
  for (const conflict of conflicts) {
    const decision = decisions.get(placeOf(conflict));
    if (decision === undefined) continue;
    const place: Record<string, unknown> = { type: conflict.type };
    if (conflict.id !== null) place["id"] = conflict.id;
    if (conflict.property !== null) place["property"] = conflict.property;
    if (conflict.facet !== null && conflict.facet !== undefined) place["facet"] = conflict.facet;
    entries.push("take" in decision ? { ...place, take: decision.take } : { ...place, value: valueOf(conflict, decision) });
  }
  if (rest !== null) entries.push({ take: rest });
  return entries;
}

function valueOf(conflict: ConflictAnswer, given: { text: string; isNull: boolean }): unknown {
  if (given.isNull) return null;
  if (isTextual(conflict)) return given.text;
  try {
    return parseJson(given.text);
  } catch {
    // The server says what the property takes.
    return given.text;
  }
}
