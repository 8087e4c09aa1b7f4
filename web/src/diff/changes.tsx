/** The changed rows between two commits: types with counts, a list of rows, and one row in full. */

import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useLoad } from "../api/hooks";
import type { ChangedRowAnswer, CountsAnswer, DifferenceAnswer } from "../api/wire";
import { useShortcuts } from "../keys";
import { Empty, Failure, HiddenTypes, Loading, Show } from "../ui/status";
import { plural, Text, Value, visible } from "../ui/text";
import { OP_WORDS, RowDetail } from "./detail";
import { IndexedList } from "./list";
import { changedProperties, loadRow, type Points, useRowPages } from "./rows";
import { Summary } from "./texts";
import "../styles/diff.css";

const OPS = ["insert", "update", "delete"] as const;
type Op = (typeof OPS)[number];
const ROW_HEIGHT = 34;
const SUMMARY_PROPERTIES = 4;

export interface RowName {
  type: string;
  id: string;
}

interface ChangesProps {
  graph: string;
  points: Points;
  /** How many comments a row has. */
  noteCount?: (type: string, id: string) => number;
  /** What stands below a property of the open row; null is the row as a whole. */
  notes?: (row: ChangedRowAnswer, property: string | null) => ComponentChildren;
  /** A row to open. */
  open?: RowName | null;
}

/** Changes between two commits. The server compares them once; rows are loaded as they are seen. */
export function Changes(props: ChangesProps): JSX.Element {
  const { graph, points } = props;
  const loaded = useLoad(
    (signal) => request<DifferenceAnswer>(graphPath(graph, "diff"), { query: { ...points }, signal }),
    [graph, points],
  );
  return (
    <Show loaded={loaded} what="Comparing">
      {(difference) => <Loaded {...props} difference={difference} />}
    </Show>
  );
}

function Loaded({ difference, ...props }: ChangesProps & { difference: DifferenceAnswer }): JSX.Element {
  const types = Object.keys(difference.changes);
  const [type, setType] = useState(props.open?.type ?? types[0] ?? "");
  const [op, setOp] = useState<Op | null>(null);
  useEffect(() => {
    if (props.open !== undefined && props.open !== null && types.includes(props.open.type)) {
      setType(props.open.type);
      setOp(null);
    }
  }, [props.open]);
  const step = (by: number): void => {
    const next = types[(types.indexOf(type) + by + types.length) % types.length];
    if (next !== undefined) setType(next);
  };
  useShortcuts([
    { keys: "]", means: "next type", run: () => step(1) },
    { keys: "[", means: "previous type", run: () => step(-1) },
  ]);
  const counts = difference.changes[type];
  return (
    <>
      <HiddenTypes count={difference.hidden?.length} />
      {difference.schema.length > 0 && <SchemaSteps steps={difference.schema} />}
      {counts === undefined ? (
        <Empty>No row differs.</Empty>
      ) : (
        <div class="difference">
          <nav class="types" aria-label="Types that changed">
            {types.map((name) => (
              <button
                key={name}
                type="button"
                aria-pressed={name === type}
                onClick={() => {
                  setType(name);
                  setOp(null);
                }}
              >
                <bdi>{visible(name)}</bdi>
                <Counts counts={difference.changes[name]!} />
              </button>
            ))}
          </nav>
          <Rows key={`${type} ${op}`} {...props} type={type} counts={counts} op={op} setOp={setOp} />
        </div>
      )}
    </>
  );
}

export function Counts({ counts }: { counts: CountsAnswer }): JSX.Element {
  return (
    <span class="counts">
      {counts.inserted > 0 && <span class="badge inserted" title="inserted">+{counts.inserted.toLocaleString("en")}</span>}
      {counts.updated > 0 && <span class="badge updated" title="updated">~{counts.updated.toLocaleString("en")}</span>}
      {counts.deleted > 0 && <span class="badge deleted" title="deleted">−{counts.deleted.toLocaleString("en")}</span>}
    </span>
  );
}

function SchemaSteps({ steps }: { steps: readonly Record<string, unknown>[] }): JSX.Element {
  return (
    <section class="panel" aria-label="Schema changes">
      <h2>Schema</h2>
      <ul>
        {steps.map((step, index) => (
          <li key={index}>
            <Text value={String(step["text"] ?? step["message"] ?? JSON.stringify(step))} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface RowsProps extends ChangesProps {
  type: string;
  counts: CountsAnswer;
  op: Op | null;
  setOp: (op: Op | null) => void;
}

function Rows({ graph, points, type, counts, op, setOp, noteCount, notes, open }: RowsProps): JSX.Element {
  const ops: readonly Op[] = op === null ? OPS : [op];
  const pages = useRowPages({ graph, points, type, ops });
  const [selected, setSelected] = useState<number | null>(null);
  const [sought, setSought] = useState<RowName | null>(open?.type === type ? open : null);
  const isOpen = selected !== null || sought !== null;
  useEffect(() => {
    if (open !== undefined && open !== null && open.type === type) {
      setSelected(null);
      setSought(open);
    }
  }, [open]);
  const total = ops.reduce((sum, each) => sum + counts[OP_WORDS[each]], 0);
  const onView = useCallback((first: number, last: number) => pages.want(first, last), [pages]);
  const move = (by: number): void => {
    setSought(null);
    setSelected((now) => Math.min(total - 1, Math.max(0, now === null ? 0 : now + by)));
  };
  const close = (): void => {
    setSelected(null);
    setSought(null);
  };
  useShortcuts([
    { keys: "j", means: "next row", run: () => move(1) },
    { keys: "k", means: "previous row", run: () => move(-1) },
    { keys: "Escape", means: "close the row", run: close },
    ...(isOpen && notes !== undefined ? [{ keys: "c", means: "comment on the row", run: startComment }] : []),
  ]);
  const row = selected === null ? undefined : pages.row(selected);
  return (
    <div class={isOpen ? "changed-rows open" : "changed-rows"}>
      <div class="listing">
        <div class="filters" role="group" aria-label="Kinds of change">
          <button type="button" aria-pressed={op === null} onClick={() => setOp(null)}>
            all
          </button>
          {OPS.filter((each) => counts[OP_WORDS[each]] > 0).map((each) => (
            <button key={each} type="button" aria-pressed={op === each} onClick={() => setOp(each)}>
              {OP_WORDS[each]} {counts[OP_WORDS[each]].toLocaleString("en")}
            </button>
          ))}
        </div>
        {pages.error !== null && <Failure error={pages.error} retry={() => pages.want(0, 1)} />}
        <IndexedList
          label={`Changed rows of ${type}`}
          total={total}
          rowHeight={ROW_HEIGHT}
          selected={selected}
          onView={onView}
        >
          {(index) => (
            <RowLine
              row={pages.row(index)}
              isSelected={index === selected}
              noteCount={noteCount}
              onChoose={() => {
                setSought(null);
                setSelected(index);
              }}
            />
          )}
        </IndexedList>
      </div>
      {isOpen &&
        (row !== undefined ? (
          <RowDetail key={row.id} graph={graph} points={points} row={row} {...withNotes(notes, row)} onClose={close} />
        ) : sought !== null ? (
          <SoughtRow graph={graph} points={points} name={sought} notes={notes} onClose={close} />
        ) : (
          <Loading />
        ))}
    </div>
  );
}

/** Go to the form of the open row, if it has one. */
function startComment(): void {
  const place = document.querySelector(".detail > .place");
  place?.querySelector<HTMLButtonElement>(":scope > .say")?.click();
  place?.querySelector("textarea")?.focus();
}

type Notes = ChangesProps["notes"];

function withNotes(notes: Notes, row: ChangedRowAnswer): { notes?: (property: string | null) => ComponentChildren } {
  return notes === undefined ? {} : { notes: (property) => notes(row, property) };
}

/** A row that somebody named, whose position nobody knows. */
function SoughtRow({
  graph,
  points,
  name,
  notes,
  onClose,
}: {
  graph: string;
  points: Points;
  name: RowName;
  notes: Notes;
  onClose: () => void;
}): JSX.Element {
  const loaded = useLoad((signal) => loadRow(graph, points, name.type, name.id, signal), [graph, points, name]);
  return (
    <Show loaded={loaded}>
      {(row) => <RowDetail graph={graph} points={points} row={row} {...withNotes(notes, row)} onClose={onClose} />}
    </Show>
  );
}

function RowLine({
  row,
  isSelected,
  noteCount,
  onChoose,
}: {
  row: ChangedRowAnswer | undefined;
  isSelected: boolean;
  noteCount: ChangesProps["noteCount"];
  onChoose: () => void;
}): JSX.Element {
  if (row === undefined) return <span class="row-line waiting">…</span>;
  const count = noteCount?.(row.type, row.id) ?? 0;
  const values = row.after ?? row.before ?? {};
  // Of a row that is shown whole, the key need not be said twice.
  const names = changedProperties(row)
    .filter((name) => row.op === "update" || values[name] !== row.id)
    .slice(0, SUMMARY_PROPERTIES);
  return (
    <button type="button" class="row-line" aria-current={isSelected ? "true" : undefined} onClick={onChoose}>
      <span class={`op ${OP_WORDS[row.op]}`} title={OP_WORDS[row.op]}>
        {{ insert: "+", update: "~", delete: "−" }[row.op]}
      </span>
      <bdi class="id">{visible(row.id.slice(0, 200))}</bdi>
      <span class="summary">
        {names.map((name) => (
          <span key={name} class="change">
            <span class="name">{visible(name)}</span>{" "}
            {row.op === "update" ? (
              <Summary before={row.before?.[name] ?? null} after={row.after?.[name] ?? null} />
            ) : (
              <Value value={values[name]} max={120} />
            )}
          </span>
        ))}
      </span>
      {count > 0 && (
        <span class="badge branch">{plural(count, "comment")}</span>
      )}
    </button>
  );
}
