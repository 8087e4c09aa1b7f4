/** One proposal: its changes, conflicts, comments and approvals; approve, merge, close. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useAction, useLoad } from "../api/hooks";
import type { MergeAnswer, ProposalAnswer } from "../api/wire";
import { Changes, type RowName } from "../diff/changes";
import { renderNow, useShortcuts } from "../keys";
import { CommentForm, CommentList, PlaceComments } from "../review/comments";
import { Conflicts } from "../review/conflicts";
import { hasHiddenConflicts } from "../review/decisions";
import { MergeDialog, type Merging, useMerging } from "../review/merging";
import { href, hrefWith } from "../router";
import { Dialog } from "../ui/dialog";
import { Empty, Failure, Notice, Show } from "../ui/status";
import { Tabs } from "../ui/tabs";
import { plural, shortId, Text, Time, visible } from "../ui/text";
import { StateBadge } from "./proposals";
import type { PageProps } from "./props";
import "../styles/review.css";

export function ProposalPage({ graph, path }: PageProps): JSX.Element {
  const number = path[0] ?? "";
  const loaded = useLoad(
    (signal) => request<ProposalAnswer>(graphPath(graph, "proposals", number), { signal }),
    [graph, number],
  );
  return (
    <Show loaded={loaded} what="Loading the proposal">
      {(proposal) => <Proposal graph={graph} proposal={proposal} reload={loaded.reload} />}
    </Show>
  );
}

type TabName = "changes" | "conflicts" | "conversation";

function Proposal({
  graph,
  proposal,
  reload,
}: {
  graph: string;
  proposal: ProposalAnswer;
  reload: () => void;
}): JSX.Element {
  const [tab, setTab] = useState<TabName>("changes");
  const [open, setOpen] = useState<RowName | null>(null);
  const [merges, setMerges] = useState(false);
  const [approves, setApproves] = useState(false);
  const [merged, setMerged] = useState<MergeAnswer | null>(null);
  const merging = useMerging(graph, proposal);
  const may = (action: string): boolean => proposal.may?.[action] === true;
  const own = (...parts: string[]): string => graphPath(graph, "proposals", proposal.number, ...parts);
  const act = useAction(async (method: "POST" | "DELETE", part: string, body?: unknown) => {
    await request(own(part), { method, ...(body === undefined ? {} : { body }) });
    reload();
  });
  const approve = (): void => void act.run("POST", "approval", { commit: proposal.source_commit });
  const left = merging.preview === null ? null : merging.preview.conflict_count;
  const isMergeable = may("merge") && proposal.is_approved === true && left === 0 && !hasHiddenConflicts(merging.preview);
  const startComment = (): void => {
    renderNow(() => setTab("conversation"));
    document.querySelector<HTMLTextAreaElement>(".conversation form.comment textarea")?.focus();
  };
  useShortcuts([
    { keys: "1", means: "changes", run: () => setTab("changes") },
    { keys: "2", means: "conflicts", run: () => setTab("conflicts") },
    { keys: "3", means: "conversation", run: () => setTab("conversation") },
    ...(may("comment") ? [{ keys: "c", means: "comment on the proposal", run: startComment }] : []),
    ...(may("approve") ? [{ keys: "a", means: "approve", run: () => setApproves(true) }] : []),
    ...(isMergeable ? [{ keys: "m", means: "merge", run: () => setMerges(true) }] : []),
  ]);
  const { base_commit: before, source_commit: after } = proposal;
  const count = merging.count > 0 ? ` ${merging.count.toLocaleString("en")}` : "";
  const tabs = [
    { name: "changes", title: "Changes" },
    ...(proposal.state === "open" ? [{ name: "conflicts", title: `Conflicts${count}` }] : []),
    { name: "conversation", title: `Conversation ${proposal.comments.length}` },
  ];
  return (
    <article class="proposal">
      <div class="title">
        <h1>
          <span class="dim">#{proposal.number}</span> <bdi class="content">{visible(proposal.title)}</bdi>
        </h1>
        <StateBadge state={proposal.state} />
      </div>
      <p class="dim">
        <bdi>{visible(proposal.author)}</bdi> proposed on <Time at={proposal.created_at} /> to merge{" "}
        <span class="badge branch">{visible(proposal.source)}</span> into{" "}
        <span class="badge branch">{visible(proposal.target)}</span>
      </p>
      {proposal.description !== "" && (
        <p class="description">
          <Text value={proposal.description} />
        </p>
      )}
      <Standing
        graph={graph}
        proposal={proposal}
        merging={merging}
        isBusy={act.isRunning}
        isMergeable={isMergeable}
        onApprove={approve}
        onWithdraw={() => void act.run("DELETE", "approval")}
        onClose={() => void act.run("POST", "close")}
        onMerge={() => setMerges(true)}
        onConflicts={() => setTab("conflicts")}
      />
      {act.error !== null && <Failure error={act.error} retry={reload} />}
      {merged?.warnings.map((warning, index) => (
        <Notice key={index} kind="bad">
          {visible(warning.message)}
        </Notice>
      ))}
      <Tabs label="Parts of the proposal" tabs={tabs} chosen={tab} onChoose={(name) => setTab(name as TabName)}>
        {tab === "changes" &&
          (before == null || after == null ? (
            <Empty>The branch {visible(proposal.source)} was deleted, and its changes with it.</Empty>
          ) : (
            <Changes
              graph={graph}
              points={{ before, after }}
              open={open}
              noteCount={(type, id) =>
                proposal.comments.filter(({ row }) => row !== null && row.type_name === type && row.id === id).length
              }
              notes={(row, property) => (
                <PlaceComments
                  graph={graph}
                  proposal={proposal}
                  place={{ type: row.type, id: row.id, property }}
                  mayComment={may("comment")}
                  onDone={reload}
                />
              )}
            />
          ))}
        {tab === "conflicts" && (
          <>
            {merging.error !== null && <Failure error={merging.error} />}
            <Conflicts
              conflicts={merging.conflicts}
              count={Math.max(merging.count, merging.conflicts.length)}
              decisions={merging.decisions}
              rest={merging.rest}
              source={proposal.source}
              target={proposal.target}
              onDecide={merging.decide}
              onRest={merging.decideRest}
              left={left}
            />
          </>
        )}
        {tab === "conversation" && (
          <section class="conversation" aria-label="Conversation">
            {proposal.comments.length === 0 && <Empty>Nobody has said anything.</Empty>}
            <CommentList
              comments={proposal.comments}
              onOpen={({ type, id }) => {
                setOpen({ type, id });
                setTab("changes");
              }}
            />
            {may("comment") && (
              <CommentForm graph={graph} number={proposal.number} label="Comment on the proposal" onDone={reload} />
            )}
          </section>
        )}
      </Tabs>
      {approves && (
        <Dialog title="Approve the proposal" onClose={() => setApproves(false)}>
          <p>
            Approve merging <strong>{visible(proposal.source)}</strong> into <strong>{visible(proposal.target)}</strong>, as this page
            shows it?
          </p>
          <p class="actions">
            <button type="button" onClick={() => setApproves(false)}>
              Cancel
            </button>{" "}
            <button
              type="button"
              class="primary"
              onClick={() => {
                setApproves(false);
                approve();
              }}
            >
              Approve
            </button>
          </p>
        </Dialog>
      )}
      {merges && (
        <MergeDialog
          graph={graph}
          proposal={proposal}
          merging={merging}
          onClose={() => {
            setMerges(false);
            // What was refused may have been refused since something moved.
            merging.refresh();
            reload();
          }}
          onDone={(answer) => {
            setMerges(false);
            setMerged(answer);
            setTab("changes");
            reload();
          }}
        />
      )}
    </article>
  );
}

/** Where a proposal stands, and what the person may do. The button Merge says why it cannot be used. */
function Standing({
  graph,
  proposal,
  merging,
  isBusy,
  isMergeable,
  onApprove,
  onWithdraw,
  onClose,
  onMerge,
  onConflicts,
}: {
  graph: string;
  proposal: ProposalAnswer;
  merging: Merging;
  isBusy: boolean;
  isMergeable: boolean;
  onApprove: () => void;
  onWithdraw: () => void;
  onClose: () => void;
  onMerge: () => void;
  onConflicts: () => void;
}): JSX.Element {
  const may = proposal.may ?? {};
  const counted = proposal.approved_by ?? [];
  const stale = proposal.approvals.filter((approval) => !counted.includes(approval.actor));
  const needed = proposal.approvals_needed ?? 0;
  const facts = useId();
  const left = merging.preview?.conflict_count ?? null;
  const { ending } = proposal;
  if (ending !== null) {
    return (
      <div class="panel standing" aria-label="State" role="region">
        <ul class="plain-list">
          <li>
            {proposal.state} by <bdi>{visible(ending.actor ?? "an actor without a name")}</bdi>, <Time at={ending.at} />
            {ending.commit_id !== null && (
              <>
                {" "}
                as commit <a href={href("graphs", graph, "commits", ending.commit_id)}>{shortId(ending.commit_id)}</a>; see the{" "}
                <a href={hrefWith(["graphs", graph, "history"], { branch: proposal.target === "main" ? null : proposal.target })}>
                  history of {visible(proposal.target)}
                </a>
              </>
            )}
          </li>
          {proposal.approvals.length > 0 && (
            <li>approved by {proposal.approvals.map((approval) => visible(approval.actor)).join(", ")}</li>
          )}
        </ul>
      </div>
    );
  }
  return (
    <div class="panel standing" aria-label="State" role="region">
      <ul class="plain-list" id={facts}>
        <li class={proposal.is_approved !== true ? "no" : counted.length > 0 ? "yes" : undefined}>
          {needed === 0 ? "needs no approval" : `needs ${plural(needed, "approval")}`};{" "}
          {counted.length === 0 ? "approved by nobody" : `approved by ${counted.map(visible).join(", ")}`}
        </li>
        {stale.length > 0 && (
          <li class="no">
            {stale.map((approval) => visible(approval.actor)).join(", ")} approved an earlier state of{" "}
            {visible(proposal.source)}, which does not count any more
          </li>
        )}
        {proposal.source_commit == null ? (
          <li class="no">the branch {visible(proposal.source)} was deleted</li>
        ) : hasHiddenConflicts(merging.preview) ? (
          <li class="no">conflicts of hidden types: somebody who may read them has to decide</li>
        ) : left === null ? (
          <li class="dim">{merging.error === null ? "looking for conflicts…" : "the merge cannot be previewed"}</li>
        ) : (
          <li class={left === 0 ? "yes" : "no"}>
            {left === 0 ? (
              merging.count === 0 ? (
                "no conflicts"
              ) : (
                "every conflict is decided"
              )
            ) : (
              <button type="button" class="plain link" onClick={onConflicts}>
                {plural(left, "conflict")} to decide
              </button>
            )}
          </li>
        )}
        {may["merge"] !== true && proposal.source_commit != null && proposal.refusals?.["merge"] !== undefined && (
          <li class="no">
            <Text value={proposal.refusals["merge"]} />
          </li>
        )}
      </ul>
      <span class="buttons">
        {may["approve"] === true && (
          <button key="approve" type="button" disabled={isBusy} onClick={onApprove} title="Approve (a)">
            Approve
          </button>
        )}
        {may["withdraw_approval"] === true && (
          <button key="withdraw" type="button" disabled={isBusy} onClick={onWithdraw}>
            Withdraw approval
          </button>
        )}
        <button
          key="merge"
          type="button"
          class="primary"
          disabled={isBusy || !isMergeable}
          onClick={onMerge}
          title={isMergeable ? "Merge (m)" : undefined}
          aria-describedby={isMergeable ? undefined : facts}
        >
          Merge
        </button>
        {may["close"] === true && (
          <button key="close" type="button" class="danger" disabled={isBusy} onClick={onClose}>
            Close
          </button>
        )}
      </span>
    </div>
  );
}
