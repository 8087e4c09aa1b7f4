/** The schema: as a picture, as tables of properties, and as text. */

import type { JSX } from "preact";
import { graphPath, request } from "../api/client";
import { useLoad } from "../api/hooks";
import type { SchemaAnswer } from "../api/wire";
import { type Catalog, formatType, loadCatalog, type EdgeType, type NodeType } from "../catalog";
import { GraphPicture, nodeKey, PICTURE_NODES_MAX, type PictureNode } from "../pictures/graph";
import { goTo, hrefWith } from "../router";
import { Empty, Show } from "../ui/status";
import { Table } from "../ui/table";
import { Tabs } from "../ui/tabs";
import { visible } from "../ui/text";
import type { PageProps } from "./props";

const TABS = [
  { name: "picture", title: "Picture" },
  { name: "types", title: "Types" },
  { name: "text", title: "Text" },
];

export function SchemaPage({ graph, branch, query }: PageProps): JSX.Element {
  const chosen = query.get("as") ?? "picture";
  const choose = (name: string): void => goTo(hrefWith(["graphs", graph, "schema"], { as: name, branch: branch === "main" ? null : branch }));
  return (
    <>
      <h1>Schema</h1>
      <Tabs label="Forms of the schema" tabs={TABS} chosen={chosen} onChoose={choose}>
        {chosen === "text" ? (
          <SchemaText graph={graph} branch={branch} />
        ) : chosen === "types" ? (
          <Types graph={graph} branch={branch} />
        ) : (
          <Picture graph={graph} branch={branch} />
        )}
      </Tabs>
    </>
  );
}

function Picture({ graph, branch }: { graph: string; branch: string }): JSX.Element {
  const loaded = useLoad((signal) => loadCatalog(graph, { branch }, signal), [graph, branch]);
  return <Show loaded={loaded}>{(catalog) => <Drawing graph={graph} branch={branch} catalog={catalog} />}</Show>;
}

/** Node types and the edge types between them; a type leads to the tables of properties. */
function Drawing({ graph, branch, catalog }: { graph: string; branch: string; catalog: Catalog }): JSX.Element {
  if (catalog.nodes.length === 0) return <Empty>The schema has no type.</Empty>;
  if (catalog.nodes.length > PICTURE_NODES_MAX) return <Empty>The schema has more types than a picture can show.</Empty>;
  const tables = hrefWith(["graphs", graph, "schema"], { as: "types", branch: branch === "main" ? null : branch });
  const key = (name: string): string => nodeKey(name, name);
  const nodes = new Map<string, PictureNode>(
    catalog.nodes.map(({ name }) => [key(name), { type: name, id: name, label: name, href: tables }]),
  );
  const edges = catalog.edges.map((edge) => ({ source: key(edge.source), target: key(edge.target), label: edge.name }));
  return <GraphPicture graph={graph} branch={branch} nodes={nodes} edges={edges} label="Picture of the schema" />;
}

function SchemaText({ graph, branch }: { graph: string; branch: string }): JSX.Element {
  const loaded = useLoad((signal) => request<SchemaAnswer>(graphPath(graph, "schema"), { query: { branch }, signal }), [graph, branch]);
  return (
    <Show loaded={loaded}>
      {(schema) => (
        <pre class="panel" tabIndex={0} role="region" aria-label="Text of the schema">
          {visible(schema.schema)}
        </pre>
      )}
    </Show>
  );
}

function Types({ graph, branch }: { graph: string; branch: string }): JSX.Element {
  const loaded = useLoad((signal) => loadCatalog(graph, { branch }, signal), [graph, branch]);
  return (
    <Show loaded={loaded}>
      {(catalog) => (
        <>
          {catalog.nodes.length === 0 && <Empty>The schema has no type.</Empty>}
          {catalog.nodes.map((type) => (
            <TypeTable key={type.name} type={type} title={visible(type.name)} />
          ))}
          {catalog.edges.map((type) => (
            <TypeTable key={type.name} type={type} title={edgeTitle(type)} />
          ))}
        </>
      )}
    </Show>
  );
}

function edgeTitle(edge: EdgeType): string {
  return visible(`${edge.name}: ${edge.source} → ${edge.target}`);
}

function TypeTable({ type, title }: { type: NodeType; title: string }): JSX.Element {
  const indexed = new Set((type.indexes ?? []).map((index) => (typeof index === "string" ? index : index.property)));
  const properties = type.properties ?? [];
  return (
    <section>
      <h2>{title}</h2>
      {type.description !== undefined && <p class="dim">{visible(type.description)}</p>}
      {properties.length === 0 ? (
        <p class="dim">No properties.</p>
      ) : (
        <Table
          caption={`Properties of ${type.name}`}
          columns={[
            { name: "Property", cell: (property) => visible(property.name) },
            { name: "Type", cell: (property) => <code>{visible(formatType(property))}</code> },
            {
              name: "Marks",
              cell: (property) => (
                <>
                  {(type.key ?? []).includes(property.name) && <span class="badge branch">key</span>}{" "}
                  {indexed.has(property.name) && <span class="badge">index</span>}
                </>
              ),
            },
            { name: "Description", cell: (property) => <span class="dim">{visible(property.description ?? "")}</span> },
          ]}
          rows={properties}
          rowKey={(property) => property.name}
        />
      )}
    </section>
  );
}
