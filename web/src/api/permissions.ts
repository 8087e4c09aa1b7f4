/** What the server lets the actor do to branches. Pages offer nothing else. */

import { useEffect, useState } from "preact/hooks";
import { graphPath, request } from "./client";
import { useLoad } from "./hooks";
import type { BranchAction, PermissionsAnswer } from "./wire";

export interface Permissions {
  /** Whether the server would do it; false while that is unknown. */
  may: (branch: string) => boolean;
  /** Why the server would refuse it; null if it would not, and while that is unknown. */
  refusal: (branch: string) => string | null;
}

/** Ask whether the actor may do something to branches; about none, nothing is asked. */
export function usePermissions(
  graph: string,
  action: BranchAction,
  branches: readonly string[],
  more: { type?: string; source?: string } = {},
): Permissions {
  const loaded = useLoad(
    async (signal) => {
      if (branches.length === 0) return null;
      const query = { action, branch: branches, ...more };
      return request<PermissionsAnswer>(graphPath(graph, "permissions"), { query, signal });
    },
    [graph, action, branches, more],
  );
  return {
    may: (branch) => loaded.value?.may[branch] === true,
    refusal: (branch) => loaded.value?.refusals[branch] ?? null,
  };
}

const PAUSE_MS = 250;

/** A text that somebody types, once they pause. */
export function usePaused(typed: string): string {
  const [settled, setSettled] = useState(typed);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(typed), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return settled;
}
