/** What the console reads from the text of a query: its parameters, and what it could draw. */

import type { Catalog } from "./catalog";

export interface Parameter {
  name: string;
  type: string;
  isOptional: boolean;
}

/** The parameters of the first query of a text. */
export function parametersOf(text: string): Parameter[] {
  const header = /\bquery\s+[A-Za-z_]\w*\s*\(([^)]*)\)/.exec(stripComments(text));
  const found: Parameter[] = [];
  for (const match of (header?.[1] ?? "").matchAll(/\$(\w+)\s*:\s*([A-Za-z]\w*(?:\([^)]*\))?|\[[^\]]*\])(\?)?/g)) {
    found.push({ name: match[1] ?? "", type: match[2] ?? "", isOptional: match[3] === "?" });
  }
  return found;
}

/** What was typed for a parameter, as the value that is sent. */
export function parameterValue(parameter: Parameter, typed: string): unknown {
  if (typed === "" && parameter.isOptional) return null;
  if (/^(String|Date|DateTime|Enum)/i.test(parameter.type)) return typed;
  if (/^-?\d+$/.test(typed)) return BigInt(typed);
  try {
    return JSON.parse(typed);
  } catch {
    // The server says what is wrong with it, by the type that it wants.
    return typed;
  }
}

/** Whether a text inserts, updates or deletes. */
export function isMutation(text: string): boolean {
  const plain = stripLiterals(stripComments(text));
  return /[{}\s](insert|update|delete)\s+[A-Za-z$]/.test(plain) && !/\breturn\s*\{/.test(plain);
}

export interface PicturePlan {
  /** The query that reads the ids of all nodes that the match names. */
  query: string;
  nodes: readonly string[];
  edges: readonly { source: string; target: string; label: string; isPath: boolean }[];
}

const ROWS_MAX = 200;
/** Stands for hops such as `{1,3}`, so that every brace that is left encloses a block. */
const HOPS = "#";
const WALK = /\$(\w+)\s+<?\s*(?:\$\w+\s*:\s*)?([a-z]\w*(?:\s*\|\s*[a-z]\w*)*)\s*(#)?\s*>?\s*\$(\w+)/;

/** How to draw what a query matches; null if its match names no nodes, or is written otherwise. */
export function picturePlan(text: string, catalog: Catalog): PicturePlan | null {
  const plain = stripComments(text);
  const header = /\bquery\s+[A-Za-z_]\w*\s*(\([^)]*\))/.exec(plain);
  const start = /\bmatch\s*\{/.exec(plain);
  if (header === null || start === null) return null;
  const open = start.index + start[0].length;
  const close = closing(plain, open);
  if (close === null) return null;
  const match = plain.slice(open, close);
  const outer = withoutBlocks(stripLiterals(match));
  const nodes = new Set<string>();
  for (const found of outer.matchAll(/\$(\w+)\s*:\s*[A-Z]/g)) if (found[1] !== undefined) nodes.add(found[1]);
  const edges: { source: string; target: string; label: string; isPath: boolean }[] = [];
  const known = new Set(catalog.edges.map((edge) => edge.name.toLowerCase()));
  let rest = outer;
  for (let found = WALK.exec(rest); found !== null; found = WALK.exec(rest)) {
    const [whole, source = "", label = "", hops, target = ""] = found;
    // The next walk may begin where this one ends.
    rest = rest.slice(found.index + whole.length - target.length - 1);
    const names = label.split("|").map((name) => name.trim());
    if (names.some((name) => !known.has(name.toLowerCase())) || target === "_" || source === "_") continue;
    nodes.add(source).add(target);
    edges.push({ ...directed(source, target, names[0] ?? "", outer, catalog), label: names.join("|"), isPath: hops !== undefined });
  }
  if (nodes.size === 0) return null;
  const columns = [...nodes].flatMap((name) => [`type($${name}) as t_${name}`, `$${name}.id as i_${name}`]);
  const query = `query picture${header[1]} { match {${match}} return { ${columns.join(", ")} } limit ${ROWS_MAX} }`;
  return { query, nodes: [...nodes], edges };
}

/** The ends of a walk as the edge leads: where the types decide it, they do. */
function directed(source: string, target: string, word: string, match: string, catalog: Catalog): { source: string; target: string } {
  const edge = catalog.edges.find((each) => each.name.toLowerCase() === word.toLowerCase());
  const typeOf = (name: string): string | undefined => new RegExp(`\\$${name}\\s*:\\s*([A-Z]\\w*)`).exec(match)?.[1];
  const isReversed =
    edge !== undefined && edge.source !== edge.target && (typeOf(source) === edge.target || typeOf(target) === edge.source);
  return isReversed ? { source: target, target: source } : { source, target };
}

function stripComments(text: string): string {
  return text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (found) => (found.startsWith('"') ? found : " "));
}

function stripLiterals(text: string): string {
  return text.replace(/"(?:[^"\\\n]|\\.)*"/g, '""');
}

/** The place of the brace that closes the block which starts at a place. */
function closing(text: string, start: number): number | null {
  let depth = 1;
  let isText = false;
  for (let at = start; at < text.length; at++) {
    const letter = text[at];
    if (isText) {
      if (letter === "\\") at++;
      else if (letter === '"') isText = false;
    } else if (letter === '"') isText = true;
    else if (letter === "{") depth++;
    else if (letter === "}" && --depth === 0) return at;
  }
  return null;
}

/** A match without its inner blocks, such as `not { … }`: their variables are not visible outside. */
function withoutBlocks(text: string): string {
  let result = text.replace(/\{\s*\d+\s*(?:,\s*\d*\s*)?\}/g, HOPS);
  let before = "";
  while (before !== result) {
    before = result;
    result = result.replace(/\{[^{}]*\}/g, " ");
  }
  return result;
}
