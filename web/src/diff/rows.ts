/** Changed rows by their position: loaded in pages when they come into view, and few are kept. */

import { useEffect, useMemo, useReducer } from "preact/hooks";
import { graphPath, type ProblemError, request } from "../api/client";
import { toProblem } from "../api/hooks";
import type { ChangedRowAnswer, ChangedRowsAnswer } from "../api/wire";

const PAGE_ROWS = 100;
/** So many pages stay in memory, whatever the number of rows. */
const PAGES_MAX = 24;

/** Two commits, whose difference never changes. */
export interface Points {
  before: string;
  after: string;
}

export interface RowsWanted {
  graph: string;
  points: Points;
  type: string;
  ops: readonly string[];
}

/** Loads pages of the changed rows of one type. */
export class RowPages {
  private readonly pages = new Map<number, ChangedRowAnswer[]>();
  private readonly loading = new Map<number, AbortController>();
  error: ProblemError | null = null;

  constructor(
    private readonly wanted: RowsWanted,
    private readonly onChange: () => void,
  ) {}

  /** A row, if its page is loaded. */
  row(index: number): ChangedRowAnswer | undefined {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  /** Load what is missing of the rows from one position to before another. */
  want(first: number, last: number): void {
    if (last <= first) return;
    const from = Math.floor(first / PAGE_ROWS);
    const to = Math.floor((last - 1) / PAGE_ROWS);
    for (const [page, cancel] of this.loading) {
      // Somebody scrolled past it.
      if (page < from - 1 || page > to + 1) {
        cancel.abort();
        this.loading.delete(page);
      }
    }
    for (let page = from; page <= to; page += 1) {
      const known = this.pages.get(page);
      if (known !== undefined) {
        this.pages.delete(page);
        this.pages.set(page, known);
      } else if (!this.loading.has(page)) void this.load(page);
    }
  }

  stop(): void {
    for (const cancel of this.loading.values()) cancel.abort();
    this.loading.clear();
  }

  private async load(page: number): Promise<void> {
    const cancel = new AbortController();
    this.loading.set(page, cancel);
    const { graph, points, type, ops } = this.wanted;
    try {
      const answer = await request<ChangedRowsAnswer>(graphPath(graph, "diff", "rows"), {
        query: { ...points, types: type, ops, offset: page * PAGE_ROWS, limit: PAGE_ROWS },
        signal: cancel.signal,
      });
      this.pages.set(page, answer.rows);
      this.error = null;
      for (const oldest of this.pages.keys()) {
        if (this.pages.size <= PAGES_MAX) break;
        this.pages.delete(oldest);
      }
    } catch (failure) {
      if (cancel.signal.aborted) return;
      this.error = toProblem(failure);
    }
    this.loading.delete(page);
    this.onChange();
  }
}

/** The pages of some rows, for a component: it is drawn again when one has come. */
export function useRowPages(wanted: RowsWanted): RowPages {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const key = JSON.stringify(wanted);
  const pages = useMemo(() => new RowPages(wanted, () => redraw(undefined)), [key]);
  useEffect(() => () => pages.stop(), [pages]);
  return pages;
}

/** One row at two commits, wherever it is in a diff. */
export async function loadRow(
  graph: string,
  points: Points,
  type: string,
  id: string,
  signal: AbortSignal,
): Promise<ChangedRowAnswer> {
  const [before, after] = await Promise.all(
    [points.before, points.after].map((at) => loadEntity(graph, type, id, at, signal)),
  );
  const op = before == null ? "insert" : after == null ? "delete" : "update";
  return { kind: "", type, op, id, before: before ?? null, after: after ?? null };
}

async function loadEntity(
  graph: string,
  type: string,
  id: string,
  at: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | null> {
  try {
    return await request<Record<string, unknown>>(graphPath(graph, "entities", type), { query: { id, at }, signal });
  } catch (failure) {
    if (toProblem(failure).status === 404) return null;
    throw failure;
  }
}

/** The properties in which a row differs, or has a value if it was inserted or deleted. */
export function changedProperties(row: ChangedRowAnswer): string[] {
  const { before, after } = row;
  const names = Object.keys(after ?? before ?? {}).filter((name) => name !== "id");
  if (before === null || after === null) {
    const only = after ?? before ?? {};
    return names.filter((name) => only[name] !== null && only[name] !== undefined);
  }
  return names.filter((name) => !isSame(before[name], after[name]));
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  const write = (value: unknown): string =>
    JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? `${part}n` : part));
  return write(left) === write(right);
}
