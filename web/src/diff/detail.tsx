/** One changed row: every property that differs, before and after, and what is said about it. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ChangedRowAnswer } from "../api/wire";
import { hrefWith } from "../router";
import { Value, visible } from "../ui/text";
import { changedProperties, type Points } from "./rows";
import { After, Before } from "./texts";

export const OP_WORDS = { insert: "inserted", update: "updated", delete: "deleted" } as const;

export function RowDetail({
  graph,
  points,
  row,
  notes,
  onClose,
}: {
  graph: string;
  points: Points;
  row: ChangedRowAnswer;
  /** What stands below a property; null is the row as a whole. */
  notes?: (property: string | null) => ComponentChildren;
  onClose: () => void;
}): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const changed = changedProperties(row);
  const values = row.after ?? row.before ?? {};
  const shown = isWhole ? Object.keys(values).filter((name) => name !== "id") : changed;
  // A page of an entity is of a branch, or of any other point.
  const branch = row.after === null ? points.before : points.after;
  return (
    <section class="detail panel" aria-label={`${row.type} ${row.id}`}>
      <header>
        <h2>
          <span class={`badge ${OP_WORDS[row.op]}`}>{OP_WORDS[row.op]}</span> <bdi>{visible(row.type)}</bdi>{" "}
          <a href={hrefWith(["graphs", graph, "entities", row.type], { id: row.id, branch })}>
            <bdi class="content">{visible(row.id)}</bdi>
          </a>
        </h2>
        <span class="tools">
          <label class="inline">
            <input type="checkbox" checked={isWhole} onChange={(event) => setWhole(event.currentTarget.checked)} />
            whole row
          </label>
          <button type="button" class="plain" aria-label="Close the row" onClick={onClose}>
            ✕
          </button>
        </span>
      </header>
      <dl class="properties">
        {shown.map((name) => (
          <div key={name} class="property">
            <dt>{visible(name)}</dt>
            <dd>
              <Sides row={row} name={name} isChanged={changed.includes(name)} />
              {notes?.(name)}
            </dd>
          </div>
        ))}
        {shown.length === 0 && <p class="dim">No property has a value.</p>}
      </dl>
      {notes?.(null)}
    </section>
  );
}

function Sides({ row, name, isChanged }: { row: ChangedRowAnswer; name: string; isChanged: boolean }): JSX.Element {
  const before = row.before?.[name] ?? null;
  const after = row.after?.[name] ?? null;
  if (!isChanged) {
    return (
      <div class="side">
        <Value value={after ?? before} max={20_000} />
      </div>
    );
  }
  return (
    <div class="sides">
      {row.before !== null && (
        <div class="side removed" aria-label="before">
          <Before before={before} after={row.after === null ? null : after} />
        </div>
      )}
      {row.after !== null && (
        <div class="side added" aria-label="after">
          <After before={row.before === null ? null : before} after={after} />
        </div>
      )}
    </div>
  );
}
