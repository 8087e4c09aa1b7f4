/** The branches: where each ends, making one, deleting one. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useAction, useLoad } from "../api/hooks";
import { type Permissions, usePaused, usePermissions } from "../api/permissions";
import type { BranchAnswer, BranchesAnswer, DeletedBranchAnswer } from "../api/wire";
import { href, hrefWith } from "../router";
import { Dialog } from "../ui/dialog";
import { Pager, usePages } from "../ui/pager";
import { Failure, Notice, Show } from "../ui/status";
import { Table } from "../ui/table";
import { shortId, Text, Time, visible } from "../ui/text";
import type { PageProps } from "./props";

const PAGE = 50;

export function BranchesPage({ graph }: PageProps): JSX.Element {
  const pages = usePages();
  const [doomed, setDoomed] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const loaded = useLoad(
    (signal) => request<BranchesAnswer>(graphPath(graph, "branches"), { query: { limit: PAGE, cursor: pages.cursor }, signal }),
    [graph, pages.cursor],
  );
  const names = loaded.value?.branches.map((each) => each.branch) ?? [];
  const permissions = {
    propose: usePermissions(graph, "propose", names),
    remove: usePermissions(graph, "branch_delete", names),
  };
  const finish = (message: string): void => {
    setDone(message);
    setDoomed(null);
    loaded.reload();
  };
  return (
    <>
      <h1>Branches</h1>
      {done !== null && <Notice kind="good">{done}</Notice>}
      <Show loaded={loaded}>
        {(page) => (
          <>
            <BranchTable graph={graph} branches={page.branches} permissions={permissions} onDelete={setDoomed} />
            <Pager pages={pages} next={page.cursor} label="Pages of branches" />
            <NewBranch graph={graph} names={names} onDone={finish} />
          </>
        )}
      </Show>
      {doomed !== null && <DeleteBranch graph={graph} name={doomed} onClose={() => setDoomed(null)} onDone={finish} />}
    </>
  );
}

function BranchTable({
  graph,
  branches,
  permissions,
  onDelete,
}: {
  graph: string;
  branches: readonly BranchAnswer[];
  permissions: { propose: Permissions; remove: Permissions };
  onDelete: (name: string) => void;
}): JSX.Element {
  return (
    <Table
      caption="Branches"
      columns={[
        {
          name: "Branch",
          cell: (each) => (
            <a href={hrefWith(["graphs", graph, "history"], { branch: each.branch })}>
              <bdi class="content">{visible(each.branch)}</bdi>
            </a>
          ),
        },
        {
          name: "Newest commit",
          cell: ({ head }) => (
            <>
              <a href={href("graphs", graph, "commits", head.commit_id)}>
                <code>{shortId(head.commit_id)}</code>
              </a>{" "}
              {head.message === null ? <span class="dim">{head.operation}</span> : <Text value={head.message} max={80} />}
            </>
          ),
        },
        { name: "By", cell: ({ head }) => visible(head.actor ?? "") },
        { name: "When", cell: ({ head }) => <Time at={head.created_at} /> },
        {
          name: "Actions",
          title: <span class="hidden">Actions</span>,
          cell: (each) =>
            each.branch !== "main" && (
              <span class="actions">
                {permissions.propose.may(each.branch) && (
                  <a href={hrefWith(["graphs", graph, "proposals"], { source: each.branch })} aria-label={`Propose ${each.branch}`}>
                    Propose
                  </a>
                )}{" "}
                <button
                  type="button"
                  class="danger"
                  aria-label={`Delete ${each.branch}`}
                  disabled={!permissions.remove.may(each.branch)}
                  title={visible(permissions.remove.refusal(each.branch) ?? "")}
                  onClick={() => onDelete(each.branch)}
                >
                  Delete
                </button>
              </span>
            ),
        },
      ]}
      rows={branches}
      rowKey={(each) => each.branch}
    />
  );
}

function NewBranch({ graph, names, onDone }: { graph: string; names: readonly string[]; onDone: (message: string) => void }): JSX.Element {
  const [name, setName] = useState("");
  const [from, setFrom] = useState("main");
  const asked = usePaused(name);
  const permissions = usePermissions(graph, "branch_create", asked === "" ? [] : [asked], { source: from });
  const refusal = permissions.refusal(name);
  const why = useId();
  const create = useAction(async () => {
    const made = await request<BranchAnswer>(graphPath(graph, "branches"), { body: { name, branch: from } });
    setName("");
    onDone(`The branch ${visible(made.branch)} was made at ${made.head.commit_id}.`);
  });
  return (
    <section class="panel">
      <h2>New branch</h2>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void create.run();
        }}
      >
        <label>
          Name
          <input name="name" required value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          From
          <select name="from" value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
            {names.map((each) => (
              <option key={each} value={each}>
                {visible(each)}
              </option>
            ))}
          </select>
        </label>
        <button
          type="submit"
          class="primary"
          disabled={create.isRunning || refusal !== null}
          aria-describedby={refusal === null ? undefined : why}
        >
          Create
        </button>
      </form>
      {refusal !== null && (
        <p id={why} role="status">
          {visible(refusal)}
        </p>
      )}
      {create.error !== null && <Failure error={create.error} />}
    </section>
  );
}

function DeleteBranch({ graph, name, onClose, onDone }: { graph: string; name: string; onClose: () => void; onDone: (message: string) => void }): JSX.Element {
  const remove = useAction(async () => {
    await request<DeletedBranchAnswer>(graphPath(graph, "branches", name), { method: "DELETE" });
    onDone(`The branch ${visible(name)} was deleted.`);
  });
  return (
    <Dialog title="Delete a branch" onClose={onClose}>
      <p>
        Delete <strong>{visible(name)}</strong> and the commits that only it has? This cannot be undone.
      </p>
      {remove.error !== null && <Failure error={remove.error} />}
      <p class="actions">
        <button type="button" onClick={onClose}>
          Keep it
        </button>{" "}
        <button type="button" class="danger" disabled={remove.isRunning} onClick={() => void remove.run()}>
          Delete
        </button>
      </p>
    </Dialog>
  );
}
