/** Entities found by the beginning of their keys, and by the words of their texts. */

import type { JSX } from "preact";
import { graphPath, ProblemError, request, unlessHidden } from "../api/client";
import { useLoad } from "../api/hooks";
import type { QueryAnswer } from "../api/wire";
import { type Catalog, loadCatalog, type NodeType, searchable } from "../catalog";
import { EntityLink } from "../ui/changes";
import { Empty, HiddenTypes, Show } from "../ui/status";
import { formatValue, Text, visible } from "../ui/text";
import type { PageProps } from "./props";

const HITS_MAX = 10;
const TYPES_MAX = 40;

interface Hit {
  type: string;
  id: string;
  /** The property whose words were found; null for a key. */
  property: string | null;
  text: string;
}

export function SearchPage({ graph, branch, query }: PageProps): JSX.Element {
  const wanted = query.get("q") ?? "";
  const catalog = useLoad((signal) => loadCatalog(graph, { branch }, signal), [graph, branch]);
  return (
    <>
      <h1>
        Search for <Text value={wanted} max={100} />
      </h1>
      <Show loaded={catalog}>{(found) => <Hits key={wanted} graph={graph} branch={branch} wanted={wanted} catalog={found} />}</Show>
    </>
  );
}

function Hits({ graph, branch, wanted, catalog }: { graph: string; branch: string; wanted: string; catalog: Catalog }): JSX.Element {
  const types = catalog.nodes.slice(0, TYPES_MAX);
  const loaded = useLoad(
    (signal) => Promise.all(types.map((type) => unlessHidden(findIn(graph, branch, type, wanted, signal)))),
    [graph, branch, wanted],
  );
  return (
    <Show loaded={loaded} what="Searching">
      {(found) => {
        const hits = found.flatMap((each) => each ?? []);
        const hidden = <HiddenTypes count={found.filter((each) => each === null).length} />;
        if (hits.length === 0)
          return (
            <>
              <Empty>No key begins with it, and no indexed text has one of its words.</Empty>
              {hidden}
            </>
          );
        const exact = hits.filter((hit) => hit.property === null && hit.id === wanted);
        const rest = hits.filter((hit) => !exact.includes(hit));
        return (
          <>
            <ul class="hits">
              {[...exact, ...rest].map((hit) => (
                <li key={`${hit.type} ${hit.property} ${hit.id}`}>
                  <span class="badge">{visible(hit.type)}</span> <EntityLink graph={graph} branch={branch} type={hit.type} id={hit.id} />
                  {hit.property !== null && (
                    <p class="dim">
                      {visible(hit.property)}: <Text value={hit.text} max={240} />
                    </p>
                  )}
                </li>
              ))}
            </ul>
            {hidden}
          </>
        );
      }}
    </Show>
  );
}

async function findIn(graph: string, branch: string, type: NodeType, wanted: string, signal: AbortSignal): Promise<Hit[]> {
  const byKey = ask(graph, branch, `match { $x: ${type.name} $x.id starts_with $q } return { $x.id as id } order { $x.id } limit ${HITS_MAX}`, wanted, signal);
  const byWords = searchable(type).map((property) =>
    ask(graph, branch, `match { $x: ${type.name} search($x.${property}, $q) } return { $x.id as id, $x.${property} as text } limit ${HITS_MAX}`, wanted, signal).catch(
      // A text without a word to look for finds nothing; its key may be found all the same.
      (failure: unknown) => {
        if (failure instanceof ProblemError && failure.status === 400) return [];
        throw failure;
      },
    ),
  );
  const [keys = [], ...texts] = await Promise.all([byKey, ...byWords]);
  const hits: Hit[] = keys.map((row) => ({ type: type.name, id: String(row["id"]), property: null, text: "" }));
  searchable(type).forEach((property, at) => {
    for (const row of texts[at] ?? []) {
      const id = String(row["id"]);
      if (!hits.some((hit) => hit.id === id)) hits.push({ type: type.name, id, property, text: formatValue(row["text"]) });
    }
  });
  return hits;
}

async function ask(graph: string, branch: string, body: string, wanted: string, signal: AbortSignal): Promise<Record<string, unknown>[]> {
  const query = `query find($q: String) { ${body} }`;
  const answer = await request<QueryAnswer>(graphPath(graph, "query"), { body: { query, params: { q: wanted }, branch }, signal });
  return answer.rows;
}
