/** Loading in components: one request at a time, cancelled when it is no longer wanted. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ownProblem, ProblemError } from "./client";

export type Loaded<T> =
  | { state: "loading"; value?: T }
  | { state: "failed"; error: ProblemError; value?: T }
  | { state: "done"; value: T };

export type Load<T> = (signal: AbortSignal) => Promise<T>;

/** Load a value whenever `inputs` change. The former value stays while the next one is loaded. */
export function useLoad<T>(load: Load<T>, inputs: readonly unknown[]): Loaded<T> & { reload: () => void } {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  const [turn, setTurn] = useState(0);
  const key = JSON.stringify(inputs);
  const former = useRef(key);
  useEffect(() => {
    const cancel = new AbortController();
    const isSame = former.current === key;
    former.current = key;
    setLoaded((now) =>
      isSame && now.value !== undefined ? { state: "loading", value: now.value } : { state: "loading" },
    );
    load(cancel.signal).then(
      (value) => cancel.signal.aborted || setLoaded({ state: "done", value }),
      (error: unknown) => cancel.signal.aborted || setLoaded({ state: "failed", error: toProblem(error) }),
    );
    return () => cancel.abort();
    // `inputs` is compared by value, as `key`.
  }, [key, turn]);
  const reload = useCallback(() => setTurn((count) => count + 1), []);
  return { ...loaded, reload };
}

export interface Action<A extends readonly unknown[]> {
  run: (...given: A) => Promise<void>;
  isRunning: boolean;
  error: ProblemError | null;
  clear: () => void;
}

/** A change that a person asks for: never twice at once, and its failure is kept to be shown. */
export function useAction<A extends readonly unknown[]>(act: (...given: A) => Promise<void>): Action<A> {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<ProblemError | null>(null);
  const busy = useRef(false);
  const run = async (...given: A): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    setRunning(true);
    setError(null);
    try {
      await act(...given);
    } catch (failure) {
      setError(toProblem(failure));
    } finally {
      busy.current = false;
      setRunning(false);
    }
  };
  return { run, isRunning, error, clear: () => setError(null) };
}

/** Any failure as a problem; what is no problem of the server is a bug of this page. */
export function toProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const message = `this page failed: ${error instanceof Error ? error.message : String(error)}`;
  return new ProblemError(ownProblem("page_failed", message, "This is a bug of the app. Load the page again."));
}
