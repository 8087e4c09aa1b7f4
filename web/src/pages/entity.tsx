/** One node or edge: its properties, its neighbours, and the commits that changed it. */

import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { graphPath, request, unlessHidden } from "../api/client";
import { useLoad } from "../api/hooks";
import { usePermissions } from "../api/permissions";
import type { EntityHistoryAnswer, QueryAnswer } from "../api/wire";
import { type Catalog, type EdgeType, edgeWord, labelProperty, loadCatalog, type Point } from "../catalog";
import { GraphPicture, nodeKey, type PictureEdge, type PictureNode } from "../pictures/graph";
import { goTo, href, hrefWith } from "../router";
import { changedNames, EntityLink, OpBadge, type RowChange } from "../ui/changes";
import { Empty, Failure, HiddenTypes, Notice, Show } from "../ui/status";
import { Tabs } from "../ui/tabs";
import { formatValue, Text, Time, Value, visible } from "../ui/text";
import { EditDialog, editable } from "./edit";
import type { PageProps } from "./props";

/** Neighbours of one edge type and direction. The whole of a hub is never read. */
const NEIGHBOURS_MAX = 12;
const EDGE_TYPES_MAX = 24;
const HISTORY_COMMITS = 100;

export function EntityPage({ graph, branch, path, query }: PageProps): JSX.Element {
  const type = path[0] ?? "";
  const id = query.get("id") ?? "";
  // The commit at which it is shown; null is the tip of the branch.
  const at = query.get("at");
  const shown = query.get("show") ?? "neighbours";
  const row = useLoad(
    (signal) => request<Record<string, unknown>>(graphPath(graph, "entities", type), { query: { id, at: at ?? branch }, signal }),
    [graph, branch, at, type, id],
  );
  const catalog = useLoad((signal) => loadCatalog(graph, pointOf(branch, at), signal), [graph, branch, at]);
  const own = [...(catalog.value?.nodes ?? []), ...(catalog.value?.edges ?? [])].find((each) => each.name === type);
  const mayEdit = usePermissions(graph, "mutate", at === null ? [branch] : [], { type }).may(branch);
  const [isEditing, setEditing] = useState(false);
  const [saved, setSaved] = useState<string | null>(null);
  const choose = (name: string): void =>
    goTo(hrefWith(["graphs", graph, "entities", type], { id, show: name, at, branch: branch === "main" ? null : branch }));
  return (
    <>
      <div class="title">
        <h1>
          <Text value={id} max={200} />
        </h1>
        <span class="badge">{visible(type)}</span>
        {at === null ? (
          <span class="badge branch">{visible(branch)}</span>
        ) : (
          <span class="dim">
            as it was at <a href={href("graphs", graph, "commits", at)}>{visible(at)}</a>;{" "}
            <EntityLinkNow graph={graph} branch={branch} type={type} id={id} />
          </span>
        )}
      </div>
      <div class="columns entity">
        <Show loaded={row}>
          {(values) => (
            <section class="panel">
              <div class="title">
                <h2>Properties</h2>
                {own !== undefined && mayEdit && editable(own).length > 0 && (
                  <button type="button" onClick={() => setEditing(true)}>
                    Edit
                  </button>
                )}
              </div>
              {saved !== null && (
                <Notice kind="good">
                  Saved to {visible(branch)} as <a href={href("graphs", graph, "commits", saved)}>{saved}</a>
                </Notice>
              )}
              {isEditing && own !== undefined && (
                <EditDialog
                  graph={graph}
                  branch={branch}
                  type={own}
                  id={id}
                  values={values}
                  onClose={() => setEditing(false)}
                  onDone={(commit) => {
                    setEditing(false);
                    setSaved(commit);
                    row.reload();
                  }}
                />
              )}
              <Properties graph={graph} branch={branch} at={at} type={type} values={values} catalog={catalog.value ?? null} />
            </section>
          )}
        </Show>
        <div>
          <Tabs
            label="More about this entity"
            tabs={[
              { name: "neighbours", title: "Neighbours" },
              { name: "history", title: "History" },
            ]}
            chosen={shown}
            onChoose={choose}
          >
            {shown === "history" ? (
              <History key={`${type} ${id} ${branch}`} graph={graph} branch={branch} type={type} id={id} />
            ) : (
              <Show loaded={catalog}>
                {(found) => <Neighbours key={`${type} ${id} ${branch} ${at}`} graph={graph} branch={branch} at={at} type={type} id={id} catalog={found} />}
              </Show>
            )}
          </Tabs>
        </div>
      </div>
    </>
  );
}

function pointOf(branch: string, at: string | null): Point {
  return at === null ? { branch } : { commit: at };
}

function EntityLinkNow({ graph, branch, type, id }: { graph: string; branch: string; type: string; id: string }): JSX.Element {
  const address = hrefWith(["graphs", graph, "entities", type], { id, branch: branch === "main" ? null : branch });
  return <a href={address}>as it is on {visible(branch)}</a>;
}

function Properties({
  graph,
  branch,
  at,
  type,
  values,
  catalog,
}: {
  graph: string;
  branch: string;
  at: string | null;
  type: string;
  values: Record<string, unknown>;
  catalog: Catalog | null;
}): JSX.Element {
  const edge = catalog?.edges.find((each) => each.name === type);
  const ends: Record<string, string | undefined> = { src: edge?.source, dst: edge?.target };
  return (
    <dl class="values">
      {Object.entries(values).map(([name, value]) => {
        const end = ends[name];
        return (
          <div key={name}>
            <dt>{visible(name)}</dt>
            <dd>{end !== undefined && typeof value === "string" ? <EntityLink graph={graph} branch={branch} at={at} type={end} id={value} /> : <Value value={value} />}</dd>
          </div>
        );
      })}
    </dl>
  );
}

interface Direction {
  edge: EdgeType;
  /** The type at the other end. */
  other: string;
  isOutgoing: boolean;
}

function directionsOf(type: string, catalog: Catalog): Direction[] {
  const found: Direction[] = [];
  for (const edge of catalog.edges) {
    if (edge.source === type) found.push({ edge, other: edge.target, isOutgoing: true });
    if (edge.target === type) found.push({ edge, other: edge.source, isOutgoing: false });
  }
  return found;
}

interface Group extends Direction {
  nodes: { id: string; label: string }[];
  hasMore: boolean;
}

async function loadGroup(graph: string, point: Point, type: string, id: string, direction: Direction, catalog: Catalog, signal: AbortSignal): Promise<Group> {
  const label = labelProperty(catalog.nodes.find((each) => each.name === direction.other));
  const [from, to] = direction.isOutgoing ? ["$a", "$b"] : ["$b", "$a"];
  const columns = label === null ? "$b.id as id" : `$b.id as id, $b.${label} as label`;
  const body = {
    query: `query neighbours($id: String) { match { $a: ${type} $b: ${direction.other} ${from} ${edgeWord(direction.edge)} ${to} $a.id = $id } return { ${columns} } limit ${NEIGHBOURS_MAX + 1} }`,
    params: { id },
    ...point,
  };
  const answer = await request<QueryAnswer>(graphPath(graph, "query"), { body, signal });
  const nodes = answer.rows.map((row) => ({ id: String(row["id"]), label: formatValue(row["label"] ?? row["id"]) }));
  return { ...direction, nodes: nodes.slice(0, NEIGHBOURS_MAX), hasMore: nodes.length > NEIGHBOURS_MAX };
}

function Neighbours({ graph, branch, at, type, id, catalog }: { graph: string; branch: string; at: string | null; type: string; id: string; catalog: Catalog }): JSX.Element {
  const directions = directionsOf(type, catalog);
  const loaded = useLoad(
    (signal) => Promise.all(directions.slice(0, EDGE_TYPES_MAX).map((each) => unlessHidden(loadGroup(graph, pointOf(branch, at), type, id, each, catalog, signal)))),
    [graph, branch, at, type, id],
  );
  if (directions.length === 0) return <Empty>No edge type leads from or to {visible(type)}.</Empty>;
  return (
    <Show loaded={loaded} what="Looking for neighbours">
      {(groups) => {
        const full = groups.filter((group) => group !== null).filter((group) => group.nodes.length > 0);
        // An edge type whose other end is hidden is left out, too.
        const left = new Set(directions.filter((_, place) => groups[place] === null).map((each) => each.edge.name));
        const hidden = <HiddenTypes count={left.size} />;
        if (full.length === 0)
          return (
            <>
              <Empty>No edge leads from or to it.</Empty>
              {hidden}
            </>
          );
        return (
          <>
            <NeighbourPicture graph={graph} branch={branch} at={at} type={type} id={id} groups={full} />
            {full.map((group) => (
              <NeighbourList key={`${group.edge.name} ${group.isOutgoing}`} graph={graph} branch={branch} at={at} group={group} type={type} id={id} />
            ))}
            {directions.length > EDGE_TYPES_MAX && <p class="dim">Only the first {EDGE_TYPES_MAX} edge types are shown.</p>}
            {hidden}
          </>
        );
      }}
    </Show>
  );
}

function NeighbourPicture({ graph, branch, at, type, id, groups }: { graph: string; branch: string; at: string | null; type: string; id: string; groups: readonly Group[] }): JSX.Element {
  const own = nodeKey(type, id);
  const nodes = new Map<string, PictureNode>([[own, { type, id, label: id }]]);
  const edges: PictureEdge[] = [];
  for (const group of groups) {
    for (const node of group.nodes) {
      const key = nodeKey(group.other, node.id);
      if (!nodes.has(key)) nodes.set(key, { type: group.other, id: node.id, label: node.label });
      const [source, target] = group.isOutgoing ? [own, key] : [key, own];
      edges.push({ source, target, label: group.edge.name });
    }
  }
  return <GraphPicture graph={graph} branch={branch} at={at} nodes={nodes} edges={edges} label={`Neighbours of ${visible(id)}`} />;
}

function NeighbourList({ graph, branch, at, group, type, id }: { graph: string; branch: string; at: string | null; group: Group; type: string; id: string }): JSX.Element {
  const [from, to] = group.isOutgoing ? ["$a", "$b"] : ["$b", "$a"];
  const text = `query neighbours() {\n  match {\n    $a: ${type}\n    $b: ${group.other}\n    ${from} ${edgeWord(group.edge)} ${to}\n    $a.id = ${JSON.stringify(id)}\n  }\n  return { $b.* }\n  limit 1000\n}`;
  return (
    <section class="group">
      <h3>
        {group.isOutgoing ? `${visible(group.edge.name)} →` : `← ${visible(group.edge.name)}`} <span class="dim">{visible(group.other)}</span>
      </h3>
      <ul class="inline">
        {group.nodes.map((node) => (
          <li key={node.id}>
            <EntityLink graph={graph} branch={branch} at={at} type={group.other} id={node.id} />
            {node.label !== node.id && (
              <span class="dim">
                {" "}
                <Text value={node.label} max={60} />
              </span>
            )}
          </li>
        ))}
        {group.hasMore && (
          <li>
            <a href={hrefWith(["graphs", graph, "query"], { text, branch: branch === "main" ? null : branch })}>and more</a>
          </li>
        )}
      </ul>
    </section>
  );
}

type EntityChange = RowChange & { commit: { commit_id: string; created_at: string; actor: string | null; message: string | null; operation: string } };

function History({ graph, branch, type, id }: { graph: string; branch: string; type: string; id: string }): JSX.Element {
  const [changes, setChanges] = useState<readonly EntityChange[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const loaded = useLoad(
    async (signal) => {
      const page = await request<EntityHistoryAnswer>(graphPath(graph, "entities", type, id, "history"), {
        query: { branch, limit: HISTORY_COMMITS, cursor },
        signal,
      });
      setChanges((now) => [...now, ...(page.changes as unknown as EntityChange[])]);
      return page;
    },
    [graph, branch, type, id, cursor],
  );
  return (
    <>
      <ol class="changes">
        {changes.map((change) => (
          <li key={change.commit.commit_id}>
            <div class="head">
              <OpBadge op={change.op} />{" "}
              <a href={href("graphs", graph, "commits", change.commit.commit_id)}>
                {change.commit.message === null || change.commit.message === "" ? change.commit.operation : <Text value={change.commit.message} max={120} />}
              </a>{" "}
              <span class="dim">
                {change.commit.actor !== null && <>{visible(change.commit.actor)} · </>}
                <Time at={change.commit.created_at} />
              </span>
            </div>
            <dl class="values">
              {changedNames(change).map((name) => (
                <div key={name}>
                  <dt>{visible(name)}</dt>
                  <dd>
                    {change.before !== null && (
                      <del>
                        <Value value={change.before[name]} max={300} />
                      </del>
                    )}
                    {change.after !== null && (
                      <ins>
                        <Value value={change.after[name]} max={300} />
                      </ins>
                    )}
                  </dd>
                </div>
              ))}
            </dl>
          </li>
        ))}
      </ol>
      {loaded.state === "failed" && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.state === "loading" && <p class="loading" role="status">Looking through commits…</p>}
      {loaded.state === "done" && (
        <Fragment>
          {changes.length === 0 && loaded.value.cursor === null && <Empty>No commit of this branch changed it.</Empty>}
          {loaded.value.cursor !== null && (
            <button type="button" onClick={() => setCursor(loaded.value.cursor)}>
              Look at {HISTORY_COMMITS} later commits
            </button>
          )}
        </Fragment>
      )}
    </>
  );
}
