/** Addresses of pages: the part after `#`, which no server and no log sees. */

import { useEffect, useState } from "preact/hooks";

export interface Place {
  /** Segments of the path, decoded. */
  path: readonly string[];
  query: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const text = hash.replace(/^#?\/?/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const query = at < 0 ? "" : text.slice(at + 1);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: new URLSearchParams(query),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export type QueryValues = Record<string, string | number | null | undefined>;

/** The address of a page: `href("graphs", name, "history")`. */
export function href(...parts: readonly (string | number)[]): string {
  return `#/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;
}

/** The address of a page with values after `?`; those that are null or empty are left out. */
export function hrefWith(parts: readonly (string | number)[], values: QueryValues): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? href(...parts) : `${href(...parts)}?${text}`;
}

/** Show a page, before this returns: the browser itself tells of a new address later. */
export function goTo(address: string): void {
  location.hash = address;
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The place that the address bar shows. */
export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return parsePlace(hash);
}
