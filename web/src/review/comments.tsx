/** Comments on a proposal, on its rows and on properties of these. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useAction } from "../api/hooks";
import type { CommentAnswer, ProposalAnswer } from "../api/wire";
import { useFocus } from "../ui/focus";
import { Failure } from "../ui/status";
import { Text, Time, visible } from "../ui/text";

export interface CommentPlace {
  type: string;
  id: string;
  property?: string | null;
}

export function CommentList({
  comments,
  onOpen,
}: {
  comments: readonly CommentAnswer[];
  /** Shows the row that a comment is about. */
  onOpen?: (place: CommentPlace) => void;
}): JSX.Element | null {
  if (comments.length === 0) return null;
  return (
    <ol class="comments">
      {comments.map((comment) => (
        <li key={comment.number}>
          <header>
            <strong>
              <bdi>{visible(comment.actor)}</bdi>
            </strong>{" "}
            <span class="dim">
              <Time at={comment.at} />
            </span>
            {onOpen !== undefined && comment.row !== null && <RowLink row={comment.row} onOpen={onOpen} />}
          </header>
          <p>
            <Text value={comment.text} />
          </p>
        </li>
      ))}
    </ol>
  );
}

function RowLink({
  row,
  onOpen,
}: {
  row: NonNullable<CommentAnswer["row"]>;
  onOpen: (place: CommentPlace) => void;
}): JSX.Element {
  const { type_name: type, id, property } = row;
  return (
    <button type="button" class="plain link" onClick={() => onOpen({ type, id, property })}>
      on <bdi>{visible(type)}</bdi> <bdi>{visible(id.slice(0, 80))}</bdi>
      {property !== null && (
        <>
          {" "}
          <code>{visible(property)}</code>
        </>
      )}
    </button>
  );
}

export function CommentForm({
  graph,
  number,
  place,
  label,
  onDone,
  onCancel,
}: {
  graph: string;
  number: number;
  place?: CommentPlace;
  label: string;
  onDone: (proposal: ProposalAnswer) => void;
  onCancel?: () => void;
}): JSX.Element {
  const [text, setText] = useState("");
  const box = useFocus<HTMLTextAreaElement>(onCancel !== undefined);
  const send = useAction(async () => {
    const body = { text, ...(place ?? {}) };
    onDone(await request<ProposalAnswer>(graphPath(graph, "proposals", number, "comments"), { body }));
    setText("");
  });
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault();
        void send.run();
      }}
    >
      <textarea
        ref={box}
        aria-label={label}
        placeholder={label}
        rows={2}
        value={text}
        maxLength={10_000}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send.run();
          if (event.key === "Escape") onCancel?.();
        }}
      />
      {send.error !== null && <Failure error={send.error} />}
      <span class="buttons">
        <button type="submit" disabled={text.trim() === "" || send.isRunning}>
          Comment
        </button>
        {onCancel !== undefined && (
          <button type="button" class="plain" onClick={onCancel}>
            Cancel
          </button>
        )}
      </span>
    </form>
  );
}

/** The comments on one place of a row, and a way to add one. */
export function PlaceComments({
  graph,
  proposal,
  place,
  mayComment,
  onDone,
}: {
  graph: string;
  proposal: ProposalAnswer;
  place: CommentPlace;
  mayComment: boolean;
  onDone: (proposal: ProposalAnswer) => void;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  useLayoutEffect(() => {
    // The form that had the focus is gone: its button has it again, unless the person went on elsewhere.
    if (wasOpen.current && !isOpen && document.activeElement === document.body) opener.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  const property = place.property ?? null;
  const own = proposal.comments.filter(
    ({ row }) => row !== null && row.type_name === place.type && row.id === place.id && row.property === property,
  );
  const label = property === null ? "Comment on the row" : `Comment on ${property}`;
  return (
    <div class="place">
      <CommentList comments={own} />
      {mayComment &&
        (isOpen ? (
          <CommentForm
            graph={graph}
            number={proposal.number}
            place={place}
            label={label}
            onDone={(changed) => {
              setOpen(false);
              onDone(changed);
            }}
            onCancel={() => setOpen(false)}
          />
        ) : (
          <button ref={opener} type="button" class="plain say" aria-label={label} title={label} onClick={() => setOpen(true)}>
            {property === null ? "Comment on the row" : "Comment"}
          </button>
        ))}
    </div>
  );
}
