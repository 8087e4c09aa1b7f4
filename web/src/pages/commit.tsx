/** One commit: who, when and why, and every row that it changed. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useLoad } from "../api/hooks";
import type { ChangedRowsAnswer, CommitAnswer, DifferenceAnswer } from "../api/wire";
import { href } from "../router";
import { ChangedRow } from "../ui/changes";
import { Empty, HiddenTypes, Show } from "../ui/status";
import { Table } from "../ui/table";
import { Tabs } from "../ui/tabs";
import { plural, Text, Time, visible } from "../ui/text";
import type { PageProps } from "./props";

const PAGE = 50;

export function CommitPage({ graph, path }: PageProps): JSX.Element {
  const id = path[0] ?? "";
  const commit = useLoad((signal) => request<CommitAnswer>(graphPath(graph, "commits", id), { signal }), [graph, id]);
  return (
    <Show loaded={commit}>
      {(shown) => (
        <>
          <div class="title">
            <h1>{shown.message === null || shown.message === "" ? `A commit by ${shown.operation}` : <Text value={shown.message.split("\n")[0] ?? ""} max={300} />}</h1>
          </div>
          <Facts graph={graph} commit={shown} />
          <Changes graph={graph} commit={shown} />
        </>
      )}
    </Show>
  );
}

function Facts({ graph, commit }: { graph: string; commit: CommitAnswer }): JSX.Element {
  const rest = (commit.message ?? "").split("\n").slice(1).join("\n").trim();
  return (
    <div class="panel">
      {rest !== "" && (
        <p>
          <Text value={rest} max={10_000} />
        </p>
      )}
      <dl class="facts">
        <dt>Commit</dt>
        <dd>
          <code>{commit.commit_id}</code>
        </dd>
        <dt>Branch</dt>
        <dd>
          <span class="badge branch">{visible(commit.branch)}</span>
        </dd>
        <dt>By</dt>
        <dd>{commit.actor === null ? <span class="null">nobody named</span> : visible(commit.actor)}</dd>
        <dt>When</dt>
        <dd>
          <Time at={commit.created_at} />, by {commit.operation}
        </dd>
        {[commit.parent, commit.merged_parent].map(
          (parent, place) =>
            parent !== null && (
              <>
                <dt>{place === 0 ? "Parent" : "Merged"}</dt>
                <dd>
                  <a href={href("graphs", graph, "commits", parent)}>
                    <code>{parent}</code>
                  </a>
                </dd>
              </>
            ),
        )}
      </dl>
    </div>
  );
}

function Changes({ graph, commit }: { graph: string; commit: CommitAnswer }): JSX.Element {
  const [type, setType] = useState("");
  const id = commit.commit_id;
  const counts = useLoad((signal) => request<DifferenceAnswer>(graphPath(graph, "commits", id, "changes"), { signal }), [graph, id]);
  return (
    <Show loaded={counts} what="Comparing">
      {(shown) => {
        const changed = Object.entries(shown.changes);
        return (
          <>
            {shown.schema.length > 0 && (
              <section class="panel">
                <h2>Schema</h2>
                <ul class="steps">
                  {shown.schema.map((step, at) => (
                    <li key={at}>
                      <Text value={String(step["text"] ?? step["message"] ?? JSON.stringify(step))} max={500} />
                    </li>
                  ))}
                </ul>
              </section>
            )}
            <h2>Changes</h2>
            <HiddenTypes count={shown.hidden?.length} />
            {changed.length === 0 ? (
              <Empty>No row was changed.</Empty>
            ) : (
              <>
                <Table
                  caption="Changed rows by type"
                  columns={[
                    { name: "Type", cell: ([name]) => visible(name) },
                    { name: "Inserted", isNumeric: true, cell: ([, count]) => count.inserted.toLocaleString("en") },
                    { name: "Updated", isNumeric: true, cell: ([, count]) => count.updated.toLocaleString("en") },
                    { name: "Deleted", isNumeric: true, cell: ([, count]) => count.deleted.toLocaleString("en") },
                  ]}
                  rows={changed}
                  rowKey={([name]) => name}
                />
                {commit.parent !== null && (
                  <Tabs
                    label="Types"
                    tabs={changed.map(([name]) => ({ name, title: visible(name) }))}
                    chosen={type === "" ? (changed[0]?.[0] ?? "") : type}
                    onChoose={setType}
                  >
                    <Rows
                      key={type}
                      graph={graph}
                      before={commit.parent}
                      after={id}
                      type={type === "" ? (changed[0]?.[0] ?? "") : type}
                    />
                  </Tabs>
                )}
              </>
            )}
          </>
        );
      }}
    </Show>
  );
}

function Rows({ graph, before, after, type }: { graph: string; before: string; after: string; type: string }): JSX.Element {
  const [offset, setOffset] = useState(0);
  const loaded = useLoad(
    (signal) =>
      request<ChangedRowsAnswer>(graphPath(graph, "diff", "rows"), {
        query: { before, after, types: [type], offset, limit: PAGE },
        signal,
      }),
    [graph, before, after, type, offset],
  );
  return (
    <Show loaded={loaded} what="Reading rows">
      {(page) => (
        <>
          <ul class="changes">
            {page.rows.map((row) => (
              <li key={`${row.op} ${row.id}`}>
                {/* The branch may be deleted, and moves on: links lead to the row as this commit left it, or found it. */}
                <ChangedRow graph={graph} branch="main" at={row.op === "delete" ? before : after} row={row} />
              </li>
            ))}
          </ul>
          {page.total > PAGE && (
            <nav class="pager" aria-label="Pages of rows">
              <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>
                ← Previous
              </button>
              <span>
                {(offset + 1).toLocaleString("en")} to {Math.min(offset + PAGE, page.total).toLocaleString("en")} of {plural(page.total, "row")}
              </span>
              <button type="button" disabled={offset + PAGE >= page.total} onClick={() => setOffset(offset + PAGE)}>
                Next →
              </button>
            </nav>
          )}
        </>
      )}
    </Show>
  );
}
