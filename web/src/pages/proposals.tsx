/** Proposals: those of a state, and a form to make one. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useAction, useLoad } from "../api/hooks";
import { usePermissions } from "../api/permissions";
import type { BranchesAnswer, ProposalAnswer, ProposalsAnswer } from "../api/wire";
import { useShortcuts } from "../keys";
import { goTo, href, hrefWith } from "../router";
import { useFocus } from "../ui/focus";
import { Pager, usePages } from "../ui/pager";
import { Empty, Failure, Notice, Show } from "../ui/status";
import { plural, Time, visible } from "../ui/text";
import type { PageProps } from "./props";
import "../styles/review.css";

const STATES = ["open", "merged", "closed", "all"] as const;
const PAGE = 50;
const BRANCHES_MAX = 500;

export function ProposalsPage({ graph, branch, query }: PageProps): JSX.Element {
  const state = STATES.find((each) => each === query.get("state")) ?? "open";
  const source = query.get("source") ?? branch;
  const propose = usePermissions(graph, "propose", [source]);
  const refusal = propose.refusal(source);
  const wantsNew = query.has("new") || query.has("source");
  const isNew = wantsNew && refusal === null;
  const pages = usePages();
  useEffect(() => pages.restart(), [state]);
  const [selected, setSelected] = useState(-1);
  const loaded = useLoad(
    (signal) =>
      request<ProposalsAnswer>(graphPath(graph, "proposals"), {
        query: { state: state === "all" ? null : state, limit: PAGE, cursor: pages.cursor },
        signal,
      }),
    [graph, state, pages.cursor],
  );
  const list = loaded.value?.proposals ?? [];
  const move = (by: number): void => setSelected((at) => Math.max(0, Math.min(list.length - 1, at + by)));
  const address = (values: Record<string, string | null>): string => hrefWith(["graphs", graph, "proposals"], values);
  const stay = { state: state === "open" ? null : state };
  useShortcuts([
    { keys: "j", means: "next proposal", run: () => move(1) },
    { keys: "k", means: "previous proposal", run: () => move(-1) },
    {
      keys: "Enter",
      means: "open the proposal",
      run: () => {
        const chosen = list[selected];
        if (chosen !== undefined) goTo(href("graphs", graph, "proposals", chosen.number));
      },
    },
    ...(propose.may(source)
      ? [
          {
            keys: "n",
            means: "new proposal",
            run: () => {
              if (!isNew) goTo(address({ ...stay, new: "1" }));
              else document.querySelector<HTMLInputElement>("form.new input[name=title]")?.focus();
            },
          },
        ]
      : []),
  ]);
  return (
    <>
      <div class="title">
        <h1>Proposals</h1>
        <nav class="filters" aria-label="State">
          {STATES.map((each) => (
            <a key={each} href={address({ state: each === "open" ? null : each })} aria-current={each === state ? "true" : undefined}>
              {each}
            </a>
          ))}
        </nav>
        {!isNew && propose.may(source) && (
          <a class="button" href={address({ ...stay, new: "1" })}>
            New proposal
          </a>
        )}
      </div>
      {wantsNew && refusal !== null && <Notice kind="bad">{visible(refusal)}</Notice>}
      {isNew && <NewProposal graph={graph} source={query.get("source")} cancel={address(stay)} />}
      <Show loaded={loaded}>
        {(answer) =>
          answer.proposals.length === 0 ? (
            <Empty>{state === "open" ? "No proposal waits for review." : "There is no such proposal."}</Empty>
          ) : (
            <ul class="proposals">
              {answer.proposals.map((proposal, index) => (
                <ProposalItem key={proposal.number} graph={graph} proposal={proposal} isSelected={index === selected} />
              ))}
            </ul>
          )
        }
      </Show>
      <Pager pages={pages} next={loaded.value?.cursor ?? null} label="Pages of proposals" />
    </>
  );
}

export function StateBadge({ state }: { state: ProposalAnswer["state"] }): JSX.Element {
  const kind = { open: "good", merged: "branch", closed: "bad" }[state];
  return <span class={`badge ${kind}`}>{state}</span>;
}

function ProposalItem({
  graph,
  proposal,
  isSelected,
}: {
  graph: string;
  proposal: ProposalAnswer;
  isSelected: boolean;
}): JSX.Element {
  return (
    <li aria-current={isSelected ? "true" : undefined}>
      <StateBadge state={proposal.state} />
      <div>
        <a href={href("graphs", graph, "proposals", proposal.number)}>
          <bdi class="content">{visible(proposal.title)}</bdi>
        </a>
        <p class="dim">
          #{proposal.number} by <bdi>{visible(proposal.author)}</bdi>, <Time at={proposal.created_at} />:{" "}
          <span class="badge branch">{visible(proposal.source)}</span> into{" "}
          <span class="badge branch">{visible(proposal.target)}</span>
        </p>
      </div>
      <span class="dim facts">
        {proposal.approvals.length > 0 && <span>{plural(proposal.approvals.length, "approval")}</span>}
        {proposal.comments.length > 0 && <span>{plural(proposal.comments.length, "comment")}</span>}
      </span>
    </li>
  );
}

function NewProposal({ graph, source, cancel }: { graph: string; source: string | null; cancel: string }): JSX.Element {
  const branches = useLoad(
    (signal) => request<BranchesAnswer>(graphPath(graph, "branches"), { query: { limit: BRANCHES_MAX }, signal }),
    [graph],
  );
  const names = (branches.value?.branches ?? []).map((each) => each.branch);
  const [from, setFrom] = useState(source ?? "");
  const [into, setInto] = useState("main");
  const [title, setTitle] = useState("");
  const first = useFocus<HTMLInputElement>();
  const [description, setDescription] = useState("");
  const make = useAction(async () => {
    const made = await request<ProposalAnswer>(graphPath(graph, "proposals"), {
      body: { source: from, into, title, description },
    });
    goTo(href("graphs", graph, "proposals", made.number));
  });
  return (
    <form
      class="panel new"
      aria-label="New proposal"
      onSubmit={(event) => {
        event.preventDefault();
        void make.run();
      }}
    >
      <h2>New proposal</h2>
      <div class="columns">
        <label>
          Merge the branch
          <select required value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
            <option value="">choose</option>
            {names
              .filter((name) => name !== into)
              .map((name) => (
                <option key={name} value={name}>
                  {visible(name)}
                </option>
              ))}
          </select>
        </label>
        <label>
          into
          <select value={into} onChange={(event) => setInto(event.currentTarget.value)}>
            {names
              .filter((name) => name !== from)
              .map((name) => (
                <option key={name} value={name}>
                  {visible(name)}
                </option>
              ))}
          </select>
        </label>
      </div>
      <label>
        Title
        <input
          ref={first}
          type="text"
          name="title"
          required
          maxLength={200}
          value={title}
          onInput={(event) => setTitle(event.currentTarget.value)}
        />
      </label>
      <label>
        Why, for the reviewers
        <textarea
          rows={3}
          maxLength={10_000}
          value={description}
          onInput={(event) => setDescription(event.currentTarget.value)}
        />
      </label>
      {make.error !== null && <Failure error={make.error} />}
      <p class="buttons">
        <button type="submit" class="primary" disabled={from === "" || title.trim() === "" || make.isRunning}>
          Propose
        </button>
        <a class="button" href={cancel}>
          Cancel
        </a>
      </p>
    </form>
  );
}
