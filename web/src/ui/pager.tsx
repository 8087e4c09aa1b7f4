/** Pages of a list that the server gives out by cursors. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

export interface Pages {
  /** The cursor of the page to load; null is the first. */
  cursor: string | null;
  number: number;
  forward: (cursor: string) => void;
  back: () => void;
  restart: () => void;
}

export function usePages(): Pages {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  return {
    cursor: cursors.at(-1) ?? null,
    number: cursors.length + 1,
    forward: (cursor) => setCursors([...cursors, cursor]),
    back: () => setCursors(cursors.slice(0, -1)),
    restart: () => setCursors([]),
  };
}

export function Pager({ pages, next, label }: { pages: Pages; next: string | null; label: string }): JSX.Element | null {
  if (next === null && pages.number === 1) return null;
  return (
    <nav class="pager" aria-label={label}>
      <button type="button" disabled={pages.number === 1} onClick={pages.back}>
        ← Previous
      </button>
      <span>Page {pages.number}</span>
      <button type="button" disabled={next === null} onClick={() => next !== null && pages.forward(next)}>
        Next →
      </button>
    </nav>
  );
}
