/** The history of all branches, or of one, as a drawn graph of commits. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { toProblem, useLoad } from "../api/hooks";
import type { ProblemError } from "../api/client";
import type { DrawnCommitAnswer, HistoryAnswer } from "../api/wire";
import { useShortcuts } from "../keys";
import { layOut } from "../pictures/lanes";
import { goTo, href } from "../router";
import { Failure, Show } from "../ui/status";
import { shortId, Text, Time, visible } from "../ui/text";
import type { PageProps } from "./props";

const PAGE = 60;
const ROW = 46;
const LANE = 16;
const RADIUS = 5;
const LANES_SHOWN_MAX = 24;

export function HistoryPage({ graph, branch, query }: PageProps): JSX.Element {
  // Without a branch in the address, the history is that of all.
  const only = query.get("branch");
  const load = (cursor: string | null, signal?: AbortSignal): Promise<HistoryAnswer> =>
    request(graphPath(graph, "history"), { query: { branch: only, limit: PAGE, cursor }, signal });
  const first = useLoad((signal) => load(null, signal), [graph, only]);
  return (
    <>
      <div class="title">
        <h1>History</h1>
        <span class="dim">{only === null ? "of all branches" : <>of {visible(branch)}, with what was merged into it</>}</span>
      </div>
      <Show loaded={first} what="Reading the history">
        {(page) => <Commits key={`${only} ${page.commits[0]?.commit_id}`} graph={graph} first={page} load={load} />}
      </Show>
    </>
  );
}

function Commits({
  graph,
  first,
  load,
}: {
  graph: string;
  first: HistoryAnswer;
  load: (cursor: string | null) => Promise<HistoryAnswer>;
}): JSX.Element {
  const [pages, setPages] = useState<readonly HistoryAnswer[]>([first]);
  const [error, setError] = useState<ProblemError | null>(null);
  const [isLoading, setLoading] = useState(false);
  const [at, setAt] = useState(-1);
  const commits = pages.flatMap((page) => page.commits);
  const cursor = pages.at(-1)?.cursor ?? null;
  const more = (): void => {
    setLoading(true);
    load(cursor)
      .then(
        (page) => {
          setPages((now) => [...now, page]);
          setError(null);
        },
        (failure: unknown) => setError(toProblem(failure)),
      )
      .finally(() => setLoading(false));
  };
  const move = (step: number): void => setAt((now) => Math.max(0, Math.min(commits.length - 1, now + step)));
  useShortcuts([
    { keys: "j", means: "next commit", run: () => move(1) },
    { keys: "k", means: "previous commit", run: () => move(-1) },
    {
      keys: "Enter",
      means: "open the commit",
      run: () => {
        const commit = commits[at];
        if (commit !== undefined) goTo(href("graphs", graph, "commits", commit.commit_id));
      },
    },
  ]);
  useEffect(() => {
    document.querySelector(".history li[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const layout = layOut(commits);
  const width = Math.min(layout.width, LANES_SHOWN_MAX) * LANE + 16;
  return (
    <div class="history">
      <svg aria-hidden="true" width={width} height={commits.length * ROW} viewBox={`0 0 ${width} ${commits.length * ROW}`}>
        {layout.lines.map((line, index) => (
          <path key={index} class={`line lane-${line.lane % 8}`} d={curve(line.row, line.from, line.to)} />
        ))}
        {commits.map((commit, row) => {
          const lane = layout.lanes[row] ?? 0;
          const kind = commit.merged_parent === null ? "commit" : "commit merge";
          return <circle key={commit.commit_id} class={`${kind} lane-${lane % 8}`} cx={x(lane)} cy={y(row)} r={RADIUS} />;
        })}
      </svg>
      <ol>
        {commits.map((commit, row) => (
          <Row key={commit.commit_id} graph={graph} commit={commit} isCurrent={row === at} />
        ))}
      </ol>
      {error !== null && <Failure error={error} retry={more} />}
      {cursor !== null && (
        <p class="more">
          <button type="button" onClick={more} disabled={isLoading}>
            Older commits
          </button>
        </p>
      )}
    </div>
  );
}

function x(lane: number): number {
  return 12 + lane * LANE;
}

function y(row: number): number {
  return row * ROW + ROW / 2;
}

function curve(row: number, from: number, to: number): string {
  const [x1, y1, x2, y2] = [x(from), y(row), x(to), y(row + 1)];
  if (from === to) return `M${x1} ${y1}V${y2}`;
  return `M${x1} ${y1}C${x1} ${y1 + ROW * 0.6} ${x2} ${y2 - ROW * 0.6} ${x2} ${y2}`;
}

function Row({ graph, commit, isCurrent }: { graph: string; commit: DrawnCommitAnswer; isCurrent: boolean }): JSX.Element {
  const subject = (commit.message ?? "").split("\n")[0] ?? "";
  return (
    <li aria-current={isCurrent ? "true" : undefined}>
      <div class="subject">
        <a href={href("graphs", graph, "commits", commit.commit_id)}>
          {subject === "" ? <span>{commit.operation}</span> : <Text value={subject} max={160} />}
        </a>
        {commit.branches.map((name) => (
          <span key={name} class="badge branch">
            {visible(name)}
          </span>
        ))}
        {commit.tags.map((name) => (
          <span key={name} class="badge tag">
            {visible(name)}
          </span>
        ))}
      </div>
      <div class="dim facts">
        <code>{shortId(commit.commit_id)}</code> {subject !== "" && <>{commit.operation} · </>}
        {commit.actor !== null && <>{visible(commit.actor)} · </>}
        <Time at={commit.created_at} />
        {commit["let_go"] !== null && commit["let_go"] !== undefined && <> · let go</>}
      </div>
    </li>
  );
}
