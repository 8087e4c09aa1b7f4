/** Conflicts side by side: keep the target's, take the source's, or write another value. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ConflictAnswer } from "../api/wire";
import { After } from "../diff/texts";
import { Empty } from "../ui/status";
import { formatValue, plural, Text, Value, visible } from "../ui/text";
import { type Decision, type Decisions, isViolation, mayEdit, mayTakeTheirs, placeOf } from "./decisions";

const KINDS: Record<string, string> = {
  divergent_insert: "both inserted it",
  divergent_update: "both changed it",
  delete_vs_update: "one deleted what the other changed",
  orphan_edge: "an edge without its node",
  unique_violation: "a value that has to be unique",
  cardinality_violation: "too many or too few edges",
  value_constraint_violation: "a value that a rule forbids",
  schema: "the schemas contradict each other",
};

const SHOWN_AT_ONCE = 50;

export interface ConflictsProps {
  conflicts: readonly ConflictAnswer[];
  /** How many there are; more than are listed. */
  count: number;
  decisions: Decisions;
  rest: "ours" | "theirs" | null;
  source: string;
  target: string;
  onDecide: (place: string, decision: Decision | null) => void;
  onRest: (rest: "ours" | "theirs" | null) => void;
  /** How many are still undecided, if the server has said so. */
  left: number | null;
}

export function Conflicts(props: ConflictsProps): JSX.Element {
  const { conflicts, count, rest, source, target, onRest, left } = props;
  const [shown, setShown] = useState(SHOWN_AT_ONCE);
  if (conflicts.length === 0) {
    return <Empty>Nothing that {target} has since then is in the way.</Empty>;
  }
  const clashes = conflicts.filter((conflict) => !isViolation(conflict));
  const violations = conflicts.filter(isViolation);
  const listed = [...clashes, ...violations].slice(0, shown);
  return (
    <div class="conflicts">
      <div class="panel bulk">
        <span>
          {plural(count, "conflict")}
          {left !== null && <strong>{left === 0 ? ", all decided" : `, ${left.toLocaleString("en")} undecided`}</strong>}
        </span>
        <label class="inline">
          All others:
          <select
            aria-label="All other conflicts"
            value={rest ?? ""}
            onChange={(event) => onRest((event.currentTarget.value || null) as "ours" | "theirs" | null)}
          >
            <option value="">undecided</option>
            <option value="ours">keep {visible(target)}</option>
            <option value="theirs">take {visible(source)}</option>
          </select>
        </label>
        {conflicts.length < count && <span class="dim">The first {conflicts.length.toLocaleString("en")} are listed.</span>}
      </div>
      {listed.map((conflict, index) => (
        <div key={placeOf(conflict)}>
          {index === clashes.length && <h2 class="divider">Rules that the merged graph would break</h2>}
          <ConflictCard {...props} conflict={conflict} />
        </div>
      ))}
      {shown < conflicts.length && (
        <button type="button" onClick={() => setShown(shown + SHOWN_AT_ONCE)}>
          Show more
        </button>
      )}
    </div>
  );
}

/** The message without its kind, and without the edges, which have a line of their own. */
function whatIsBroken(conflict: ConflictAnswer): string {
  const message = conflict.message.replace(`${conflict.kind}: `, "");
  return (conflict.edges ?? 0) > 0 ? message.replace(/ \([\d,]+ edges? (was|were) deleted along with the node\)$/, "") : message;
}

function ConflictCard({
  conflict,
  decisions,
  rest,
  source,
  target,
  onDecide,
}: ConflictsProps & { conflict: ConflictAnswer }): JSX.Element {
  const place = placeOf(conflict);
  const decision = decisions.get(place);
  const taken = decision === undefined ? rest : "take" in decision ? decision.take : "value";
  const isRow = conflict.property === null && conflict.id !== null;
  const name = `${conflict.type} ${conflict.id ?? ""} ${conflict.property ?? ""}`.trim();
  const start = (): void => {
    const text = formatValue(conflict.theirs ?? conflict.ours ?? "");
    onDecide(place, { text, isNull: false });
  };
  return (
    <section class={`panel conflict${taken === null ? "" : " decided"}`} aria-label={`Conflict in ${name}`}>
      <header>
        <h3>
          <bdi>{visible(conflict.type)}</bdi> {conflict.id !== null && <Text value={conflict.id} max={200} />}
          {conflict.property !== null && (
            <>
              {" "}
              <code>{visible(conflict.property)}</code>
            </>
          )}
        </h3>
        <span class={`badge ${isViolation(conflict) ? "bad" : "updated"}`}>{KINDS[conflict.kind] ?? conflict.kind}</span>
      </header>
      {isViolation(conflict) || conflict.kind === "schema" ? (
        <p>
          <Text value={whatIsBroken(conflict)} max={1_000} />
        </p>
      ) : null}
      {(conflict.edges ?? 0) > 0 && (
        <p>
          {plural(conflict.edges ?? 0, "edge")} {conflict.edges === 1 ? "was" : "were"} deleted along with the node. If you
          keep the node, you keep {conflict.edges === 1 ? "it" : "them"}.
        </p>
      )}
      {(conflict.reasons ?? []).map((reason) => (
        <p key={reason}>
          <Text value={reason} max={1_000} />
        </p>
      ))}
      <div class="three" role="radiogroup" aria-label={`What to keep of ${name}`}>
        {!isViolation(conflict) && (
          <div class="choice base">
            <span class="who">before</span>
            <Side value={conflict.base} base={undefined} isRow={isRow} />
          </div>
        )}
        <label class={`choice${taken === "ours" ? " taken" : ""}`}>
          <span class="who">
            <input
              type="radio"
              name={place}
              checked={taken === "ours"}
              onChange={() => onDecide(place, { take: "ours" })}
            />
            keep {visible(target)}
          </span>
          {!isViolation(conflict) && <Side value={conflict.ours} base={conflict.base} isRow={isRow} />}
        </label>
        {mayTakeTheirs(conflict) && (
          <label class={`choice${taken === "theirs" ? " taken" : ""}`}>
            <span class="who">
              <input
                type="radio"
                name={place}
                checked={taken === "theirs"}
                onChange={() => onDecide(place, { take: "theirs" })}
              />
              take {visible(source)}
            </span>
            {!isViolation(conflict) && <Side value={conflict.theirs} base={conflict.base} isRow={isRow} />}
          </label>
        )}
        {mayEdit(conflict) && (
          <div class={`choice${taken === "value" ? " taken" : ""}`}>
            <label class="who inline">
              <input type="radio" name={place} checked={taken === "value"} onChange={start} />
              write another value
            </label>
            {decision !== undefined && "text" in decision && (
              <Editor name={name} decision={decision} onChange={(changed) => onDecide(place, changed)} />
            )}
          </div>
        )}
      </div>
      {decision !== undefined && (
        <button type="button" class="plain undo" onClick={() => onDecide(place, null)}>
          Leave undecided
        </button>
      )}
    </section>
  );
}

/** A value of one side, with what it changed of the base marked; a whole row by property. */
function Side({ value, base, isRow }: { value: unknown; base: unknown; isRow: boolean }): JSX.Element {
  if (isRow && value === null) {
    return base === undefined ? <span class="null">not there</span> : <span class="badge deleted">deleted</span>;
  }
  if (value === null || value === undefined) return <Value value={null} />;
  if (typeof value === "object" && !Array.isArray(value)) {
    const row = value as Record<string, unknown>;
    const before = (typeof base === "object" ? base : null) as Record<string, unknown> | null;
    return (
      <dl class="whole">
        {Object.keys(row)
          .filter((name) => name !== "id" && row[name] !== null)
          .map((name) => (
            <div key={name}>
              <dt>{visible(name)}</dt>
              <dd>
                {before !== null && before[name] !== row[name] ? (
                  <After before={before[name] ?? null} after={row[name]} />
                ) : (
                  <Value value={row[name]} />
                )}
              </dd>
            </div>
          ))}
      </dl>
    );
  }
  if (base === undefined) return <Value value={value} />;
  return <After before={base} after={value} />;
}

function Editor({
  name,
  decision,
  onChange,
}: {
  name: string;
  decision: { text: string; isNull: boolean };
  onChange: (decision: { text: string; isNull: boolean }) => void;
}): JSX.Element {
  return (
    <>
      <textarea
        aria-label={`Value for ${name}`}
        rows={Math.min(8, decision.text.split("\n").length + 1)}
        disabled={decision.isNull}
        value={decision.text}
        onInput={(event) => onChange({ ...decision, text: event.currentTarget.value })}
      />
      <label class="inline">
        <input
          type="checkbox"
          checked={decision.isNull}
          onChange={(event) => onChange({ ...decision, isNull: event.currentTarget.checked })}
        />
        null
      </label>
    </>
  );
}
