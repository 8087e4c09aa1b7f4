/** The schema of a graph, as pages use it. */

import { graphPath, request } from "./api/client";
import type { CatalogAnswer } from "./api/wire";

export type PropertyType = string | { list?: unknown; vector?: number; enum?: string[] };

export interface Property {
  name: string;
  type: PropertyType;
  nullable?: boolean;
  description?: string;
}

export interface NodeType {
  name: string;
  properties?: Property[];
  key?: string[];
  indexes?: (string | { property: string })[];
  description?: string;
}

export interface EdgeType extends NodeType {
  source: string;
  target: string;
}

export interface Catalog {
  nodes: readonly NodeType[];
  edges: readonly EdgeType[];
}

/** Where a page looks: at the tip of a branch, or at a commit. */
export type Point = { branch: string } | { commit: string };

export async function loadCatalog(graph: string, point: Point, signal?: AbortSignal): Promise<Catalog> {
  const answer = await request<CatalogAnswer>(graphPath(graph, "schema", "catalog"), { query: point, signal });
  return {
    nodes: (answer.node_types ?? []) as unknown as NodeType[],
    edges: (answer.edge_types ?? []) as unknown as EdgeType[],
  };
}

/** An edge's name as queries write it: `WorksAt` is `worksAt`. */
export function edgeWord(edge: EdgeType): string {
  return edge.name.slice(0, 1).toLowerCase() + edge.name.slice(1);
}

/** The properties with a full-text index. */
export function searchable(type: NodeType): string[] {
  const indexed = new Set((type.indexes ?? []).map((index) => (typeof index === "string" ? index : index.property)));
  return (type.properties ?? []).filter((each) => each.type === "String" && indexed.has(each.name)).map((each) => each.name);
}

/** The property that says what a node is where its id does not: the first text. */
export function labelProperty(type: NodeType | undefined): string | null {
  if (type === undefined || (type.key ?? []).length > 0) return null;
  return (type.properties ?? []).find((each) => each.type === "String")?.name ?? null;
}

export function formatType(property: Property): string {
  const { type } = property;
  let text: string;
  if (typeof type === "string") text = type;
  else if (type.vector !== undefined) text = `Vector(${type.vector})`;
  else if (type.enum !== undefined) text = `enum(${type.enum.join(", ")})`;
  else text = `[${formatType({ name: "", type: type.list as PropertyType })}]`;
  return property.nullable === true ? `${text}?` : text;
}
