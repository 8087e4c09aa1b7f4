/** A changed row: its kind of change, and each property before and after. */

import type { JSX } from "preact";
import { hrefWith } from "../router";
import { formatValue, Value, visible } from "./text";

export interface RowChange {
  type: string;
  op: string;
  id: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

const PAST: Record<string, string> = { insert: "inserted", update: "updated", delete: "deleted" };

/** An entity as a link to its page: as it is on a branch, or as it was at a commit. */
export function EntityLink({ graph, branch, at = null, type, id }: { graph: string; branch: string; at?: string | null; type: string; id: string }): JSX.Element {
  const address = hrefWith(["graphs", graph, "entities", type], { id, at, branch: branch === "main" ? null : branch });
  return (
    <a href={address}>
      <bdi class="content">{visible(id.length > 120 ? `${id.slice(0, 120)}…` : id)}</bdi>
    </a>
  );
}

export function OpBadge({ op }: { op: string }): JSX.Element {
  const past = PAST[op] ?? op;
  return <span class={`badge ${past}`}>{past}</span>;
}

/** The properties that differ, or all of a row that was inserted or deleted; nulls are left out. */
export function changedNames(row: RowChange): string[] {
  const names = [...new Set([...Object.keys(row.before ?? {}), ...Object.keys(row.after ?? {})])].filter((name) => name !== "id");
  if (row.before !== null && row.after !== null) {
    return names.filter((name) => formatValue(row.before?.[name]) !== formatValue(row.after?.[name]) || (row.before?.[name] === null) !== (row.after?.[name] === null));
  }
  return names.filter((name) => (row.after ?? row.before)?.[name] !== null);
}

/** A changed row; `at` is the commit at which its link shows it. */
export function ChangedRow({ graph, branch, at = null, row }: { graph: string; branch: string; at?: string | null; row: RowChange }): JSX.Element {
  return (
    <>
      <div class="head">
        <OpBadge op={row.op} /> <span class="dim">{visible(row.type)}</span>{" "}
        <EntityLink graph={graph} branch={branch} at={at} type={row.type} id={row.id} />
      </div>
      <dl class="values">
        {changedNames(row).map((name) => (
          <div key={name}>
            <dt>{visible(name)}</dt>
            <dd>
              {row.before !== null && (
                <del>
                  <Value value={row.before[name]} max={600} />
                </del>
              )}
              {row.after !== null && (
                <ins>
                  <Value value={row.after[name]} max={600} />
                </ins>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
