/** The query console: a text, its parameters, and the answer as a table or as a picture. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useAction, useLoad } from "../api/hooks";
import { usePermissions } from "../api/permissions";
import type { QueryAnswer, StoredQueriesAnswer, WriteAnswer } from "../api/wire";
import { type Catalog, loadCatalog } from "../catalog";
import { GraphPicture, nodeKey, PICTURE_NODES_MAX, type PictureEdge, type PictureNode } from "../pictures/graph";
import { isMutation, parametersOf, parameterValue, picturePlan } from "../query_text";
import { href } from "../router";
import { Empty, Failure, Notice, Show } from "../ui/status";
import { Table } from "../ui/table";
import { Tabs } from "../ui/tabs";
import { plural, Value, visible } from "../ui/text";
import type { PageProps } from "./props";

const ROWS_MAX = 10_000;
const PAGE = 100;

type Outcome = { kind: "rows"; answer: QueryAnswer; query: string; params: Record<string, unknown> } | { kind: "write"; answer: WriteAnswer };

export function QueryPage({ graph, branch, query }: PageProps): JSX.Element {
  const kept = `omnigraph.query.${graph}`;
  const [text, setText] = useState(query.get("text") ?? sessionStorage.getItem(kept) ?? "");
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const catalog = useLoad((signal) => loadCatalog(graph, { branch }, signal), [graph, branch]);
  const parameters = parametersOf(text);
  const writes = isMutation(text);
  const permissions = usePermissions(graph, "mutate", writes ? [branch] : []);
  const refusal = writes ? permissions.refusal(branch) : null;
  const why = useId();
  const action = useAction(async () => {
    sessionStorage.setItem(kept, text);
    const params = Object.fromEntries(parameters.map((each) => [each.name, parameterValue(each, typed[each.name] ?? "")]));
    if (writes) {
      const answer = await request<WriteAnswer>(graphPath(graph, "mutate"), { body: { query: text, params, branch } });
      setOutcome({ kind: "write", answer });
    } else {
      const answer = await request<QueryAnswer>(graphPath(graph, "query"), { body: { query: text, params, branch, max_rows: ROWS_MAX } });
      setOutcome({ kind: "rows", answer, query: text, params });
    }
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (refusal === null) void action.run();
    }
  };
  const example = exampleQuery(catalog.value);
  return (
    <>
      <div class="title">
        <h1>Query</h1>
        <StoredQueries graph={graph} branch={branch} onChoose={setText} />
        {example !== null && text.trim() === "" && (
          <button type="button" onClick={() => setText(example)}>
            Start with an example
          </button>
        )}
      </div>
      <form
        class="console"
        onKeyDown={onKeyDown}
        onSubmit={(event) => {
          event.preventDefault();
          void action.run();
        }}
      >
        <textarea
          class="code"
          name="query"
          aria-label="Query"
          rows={Math.min(18, Math.max(6, text.split("\n").length + 1))}
          spellcheck={false}
          autocapitalize="off"
          placeholder={example ?? "query all() { … }"}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {parameters.length > 0 && (
          <fieldset>
            <legend>Parameters</legend>
            {parameters.map((each) => (
              <label key={each.name}>
                ${each.name}{" "}
                <span class="dim">
                  {each.type}
                  {each.isOptional ? ", may be left out" : ""}
                </span>
                <input
                  name={`param-${each.name}`}
                  value={typed[each.name] ?? ""}
                  onInput={(event) => setTyped({ ...typed, [each.name]: event.currentTarget.value })}
                />
              </label>
            ))}
          </fieldset>
        )}
        <p>
          <button
            type="submit"
            class="primary"
            disabled={action.isRunning || text.trim() === "" || refusal !== null}
            aria-describedby={refusal === null ? undefined : why}
          >
            {writes ? `Write to ${visible(branch)}` : "Run"}
          </button>{" "}
          {refusal === null ? (
            <span class="dim">
              <kbd>Ctrl</kbd>
              <kbd>Enter</kbd>
              {action.isRunning && " running…"}
            </span>
          ) : (
            <span id={why} role="status">
              {visible(refusal)}
            </span>
          )}
        </p>
      </form>
      {action.error !== null && <Failure error={action.error} />}
      {action.error === null && outcome?.kind === "write" && <Written graph={graph} answer={outcome.answer} />}
      {action.error === null && outcome?.kind === "rows" && (
        <Results graph={graph} branch={branch} outcome={outcome} catalog={catalog.value ?? null} />
      )}
    </>
  );
}

function exampleQuery(catalog: Catalog | undefined): string | null {
  if (catalog === undefined) return null;
  const edge = catalog.edges[0];
  if (edge !== undefined) {
    const word = edge.name.slice(0, 1).toLowerCase() + edge.name.slice(1);
    return `query some() {\n  match {\n    $a: ${edge.source}\n    $b: ${edge.target}\n    $a ${word} $b\n  }\n  return { $a.id as a, $b.id as b }\n  limit 25\n}`;
  }
  const node = catalog.nodes[0];
  return node === undefined ? null : `query some() {\n  match { $n: ${node.name} }\n  return { $n.* }\n  limit 25\n}`;
}

function StoredQueries({ graph, branch, onChoose }: { graph: string; branch: string; onChoose: (text: string) => void }): JSX.Element | null {
  const loaded = useLoad((signal) => request<StoredQueriesAnswer>(graphPath(graph, "queries"), { query: { branch, limit: 500 }, signal }), [graph, branch]);
  const queries = loaded.value?.queries ?? [];
  if (queries.length === 0) return null;
  return (
    <select
      aria-label="Stored queries"
      value=""
      onChange={(event) => {
        const chosen = queries.find((each) => each.name === event.currentTarget.value);
        if (chosen !== undefined) onChoose(chosen.text);
      }}
    >
      <option value="">Stored queries</option>
      {queries.map((each) => (
        <option key={each.name} value={each.name}>
          {visible(each.name)}
        </option>
      ))}
    </select>
  );
}

function Written({ graph, answer }: { graph: string; answer: WriteAnswer }): JSX.Element {
  if (answer.commit_id === null) return <Notice>Nothing was changed: no row matched.</Notice>;
  const counts = Object.entries(answer.changes).map(
    ([type, count]) => `${type}: ${count.inserted} inserted, ${count.updated} updated, ${count.deleted} deleted`,
  );
  return (
    <Notice kind="good">
      Written to {visible(answer.branch)} as <a href={href("graphs", graph, "commits", answer.commit_id)}>{answer.commit_id}</a>. {visible(counts.join("; "))}
    </Notice>
  );
}

function Results({ graph, branch, outcome, catalog }: { graph: string; branch: string; outcome: Extract<Outcome, { kind: "rows" }>; catalog: Catalog | null }): JSX.Element {
  const [form, setForm] = useState("table");
  const [page, setPage] = useState(0);
  const { answer } = outcome;
  const pages = Math.max(1, Math.ceil(answer.rows.length / PAGE));
  const at = Math.min(page, pages - 1);
  return (
    <>
      <p class="dim" role="status">
        {plural(answer.rows.length, "row")} at <a href={href("graphs", graph, "commits", answer.commit_id)}>{answer.commit_id}</a>
        {answer.notes.map((note) => (
          <> · {visible(note)}</>
        ))}
      </p>
      <Tabs
        label="Forms of the answer"
        tabs={[
          { name: "table", title: "Table" },
          { name: "picture", title: "Picture" },
        ]}
        chosen={form}
        onChoose={setForm}
      >
        {form === "picture" ? (
          <ResultPicture graph={graph} branch={branch} outcome={outcome} catalog={catalog} />
        ) : answer.rows.length === 0 ? (
          <Empty>No row matched.</Empty>
        ) : (
          <>
            <Table
              caption="Rows of the answer"
              columns={answer.columns.map((name) => ({
                name,
                title: visible(name),
                isNumeric: typeof answer.rows[0]?.[name] === "number",
                cell: (row: Record<string, unknown>) => <Value value={row[name]} max={400} />,
              }))}
              rows={answer.rows.slice(at * PAGE, (at + 1) * PAGE)}
              rowKey={(_, index) => index}
            />
            {pages > 1 && (
              <nav class="pager" aria-label="Pages of the answer">
                <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
                  ← Previous
                </button>
                <span>
                  Page {at + 1} of {pages}
                </span>
                <button type="button" disabled={at + 1 >= pages} onClick={() => setPage(at + 1)}>
                  Next →
                </button>
              </nav>
            )}
          </>
        )}
      </Tabs>
    </>
  );
}

function ResultPicture({ graph, branch, outcome, catalog }: { graph: string; branch: string; outcome: Extract<Outcome, { kind: "rows" }>; catalog: Catalog | null }): JSX.Element {
  const plan = catalog === null ? null : picturePlan(outcome.query, catalog);
  const loaded = useLoad(
    async (signal) =>
      plan === null
        ? null
        : request<QueryAnswer>(graphPath(graph, "query"), {
            body: { query: plan.query, params: outcome.params, commit: outcome.answer.commit_id },
            signal,
          }),
    [graph, plan?.query ?? "", outcome.answer.commit_id],
  );
  return (
    <Show loaded={loaded} what="Drawing">
      {(answer) => {
        if (plan === null || answer === null) return <Empty>The match of this query names no nodes to draw.</Empty>;
        const { nodes, edges } = elements(answer.rows, plan);
        if (nodes.size === 0) return <Empty>No row matched.</Empty>;
        return (
          <>
            <GraphPicture graph={graph} branch={branch} nodes={nodes} edges={edges} label="Nodes and edges that the query matches" />
            <p class="dim">{plural(nodes.size, "node")} and {plural(edges.length, "edge")}; pictures have at most {PICTURE_NODES_MAX} nodes.</p>
          </>
        );
      }}
    </Show>
  );
}

type Plan = NonNullable<ReturnType<typeof picturePlan>>;

function elements(rows: readonly Record<string, unknown>[], plan: Plan): { nodes: Map<string, PictureNode>; edges: PictureEdge[] } {
  const nodes = new Map<string, PictureNode>();
  const edges = new Map<string, PictureEdge>();
  for (const row of rows) {
    const keys: Record<string, string> = {};
    for (const name of plan.nodes) {
      const [type, id] = [row[`t_${name}`], row[`i_${name}`]];
      if (typeof type !== "string" || typeof id !== "string") continue;
      const key = nodeKey(type, id);
      if (!nodes.has(key) && nodes.size >= PICTURE_NODES_MAX) continue;
      nodes.set(key, { type, id, label: id });
      keys[name] = key;
    }
    for (const edge of plan.edges) {
      const [source, target] = [keys[edge.source], keys[edge.target]];
      if (source === undefined || target === undefined) continue;
      edges.set(`${source} ${edge.label} ${target}`, { source, target, label: edge.label, isPath: edge.isPath });
    }
  }
  return { nodes, edges: [...edges.values()] };
}
