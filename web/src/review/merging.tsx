/** What a merge would do, and the dialog that merges. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { graphPath, type ProblemError, request } from "../api/client";
import { toProblem, useAction } from "../api/hooks";
import { usePermissions } from "../api/permissions";
import type { ConflictAnswer, MergeAnswer, ProposalAnswer } from "../api/wire";
import { Counts } from "../diff/changes";
import { Dialog } from "../ui/dialog";
import { Failure, HiddenTypes } from "../ui/status";
import { plural, visible } from "../ui/text";
import { type Decision, type Decisions, placeOf, toResolutions } from "./decisions";

const CONFLICTS_MAX = 1_000;
const PAUSE_MS = 350;

export interface Merging {
  /** Every conflict that was found, also those that are decided. */
  conflicts: readonly ConflictAnswer[];
  count: number;
  decisions: Decisions;
  rest: "ours" | "theirs" | null;
  resolutions: Record<string, unknown>[] | null;
  /** What the merge would do with the decisions; null while nobody knows. */
  preview: MergeAnswer | null;
  error: ProblemError | null;
  decide: (place: string, decision: Decision | null) => void;
  decideRest: (rest: "ours" | "theirs" | null) => void;
  /** Ask again: the target may have moved. */
  refresh: () => void;
}

/** The merge of an open proposal as it would be, asked for again after every decision. */
export function useMerging(graph: string, proposal: ProposalAnswer | undefined): Merging {
  const [conflicts, setConflicts] = useState<readonly ConflictAnswer[]>([]);
  const [count, setCount] = useState(0);
  const [decisions, setDecisions] = useState<Decisions>(new Map());
  const [rest, setRest] = useState<"ours" | "theirs" | null>(null);
  const [preview, setPreview] = useState<MergeAnswer | null>(null);
  const [error, setError] = useState<ProblemError | null>(null);
  /** The places of the conflicts that there are without any decision. */
  const first = useRef<ReadonlySet<string>>(new Set());
  const [turn, setTurn] = useState(0);
  const isOpen = proposal !== undefined && proposal.state === "open" && (proposal.source_commit ?? null) !== null;
  const given = toResolutions(conflicts, decisions, rest);
  const resolutions = given.length > 0 ? given : null;
  const key = [isOpen, proposal?.number, proposal?.source_commit, JSON.stringify(given, writeBig), turn].join(" ");
  useEffect(() => {
    if (!isOpen) return undefined;
    const cancel = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        const answer = await request<MergeAnswer>(graphPath(graph, "proposals", proposal.number, "preview"), {
          body: { resolve: resolutions, limit: CONFLICTS_MAX },
          signal: cancel.signal,
        });
        setPreview(answer);
        setError(null);
        if (resolutions === null) {
          first.current = new Set(answer.merge_conflicts.map(placeOf));
          setConflicts(answer.merge_conflicts);
          setCount(answer.conflict_count);
        } else {
          // A value of neither side may break a rule: that is another conflict, while it does.
          setConflicts((known) => {
            const kept = known.filter((conflict) => first.current.has(placeOf(conflict)) || decisions.has(placeOf(conflict)));
            return addNew(kept, answer.merge_conflicts);
          });
        }
      } catch (failure) {
        if (cancel.signal.aborted) return;
        setPreview(null);
        setError(toProblem(failure));
      }
    };
    const timer = setTimeout(() => void ask(), resolutions === null ? 0 : PAUSE_MS);
    setPreview((known) => (resolutions === null ? known : null));
    return () => {
      clearTimeout(timer);
      cancel.abort();
    };
  }, [key]);
  const decide = (place: string, decision: Decision | null): void => {
    const changed = new Map(decisions);
    if (decision === null) changed.delete(place);
    else changed.set(place, decision);
    setDecisions(changed);
  };
  const refresh = (): void => setTurn((now) => now + 1);
  return { conflicts, count, decisions, rest, resolutions, preview, error, decide, decideRest: setRest, refresh };
}

function writeBig(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}

function addNew(known: readonly ConflictAnswer[], found: readonly ConflictAnswer[]): readonly ConflictAnswer[] {
  const places = new Set(known.map(placeOf));
  const fresh = found.filter((conflict) => !places.has(placeOf(conflict)));
  return fresh.length === 0 ? known : [...known, ...fresh];
}

export function MergeDialog({
  graph,
  proposal,
  merging,
  onDone,
  onClose,
}: {
  graph: string;
  proposal: ProposalAnswer;
  merging: Merging;
  onDone: (answer: MergeAnswer) => void;
  onClose: () => void;
}): JSX.Element {
  const [message, setMessage] = useState("");
  const [deletes, setDeletes] = useState(false);
  const mayDelete = usePermissions(graph, "branch_delete", [proposal.source]).may(proposal.source);
  const merge = useAction(async () => {
    const answer = await request<MergeAnswer>(graphPath(graph, "proposals", proposal.number, "merge"), {
      body: {
        commit: proposal.source_commit,
        resolve: merging.resolutions,
        delete_branch: deletes && mayDelete,
        ...(message.trim() === "" ? {} : { message }),
      },
    });
    onDone(answer);
  });
  const { preview } = merging;
  return (
    <Dialog title={`Merge ${visible(proposal.source)} into ${visible(proposal.target)}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void merge.run();
        }}
      >
        <HiddenTypes count={preview?.hidden?.length} />
        {preview !== null && (
          <ul class="plain-list">
            {Object.entries(preview.changes).map(([type, counts]) => (
              <li key={type}>
                <bdi>{visible(type)}</bdi> <Counts counts={counts} />
              </li>
            ))}
          </ul>
        )}
        {merging.count > 0 && <p>{plural(merging.count, "conflict")}, decided as you chose.</p>}
        <label>
          Message
          <input
            type="text"
            value={message}
            maxLength={1_000}
            placeholder={visible(`merge proposal ${proposal.number}: ${proposal.title}`)}
            onInput={(event) => setMessage(event.currentTarget.value)}
          />
        </label>
        {mayDelete && (
          <label class="inline">
            <input type="checkbox" checked={deletes} onChange={(event) => setDeletes(event.currentTarget.checked)} />
            delete the branch {visible(proposal.source)} afterwards
          </label>
        )}
        {merge.error !== null && <Failure error={merge.error} />}
        <p class="buttons">
          <button type="submit" class="primary" disabled={merge.isRunning}>
            {merge.isRunning ? "Merging…" : "Merge"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </p>
      </form>
    </Dialog>
  );
}
