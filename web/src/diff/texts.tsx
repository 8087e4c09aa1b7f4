/** Values before and after a change, with the words that differ marked. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatValue, Value, visible } from "../ui/text";
import { compareWords, type Segment } from "./words";

const TEXT_MAX = 20_000;

function isText(value: unknown): boolean {
  return typeof value === "string" || Array.isArray(value) || (typeof value === "object" && value !== null);
}

/** The parts of a change of a value; null if it cannot be shown word by word. */
function segmentsOf(before: unknown, after: unknown): Segment[] | null {
  if (!isText(before) || !isText(after) || before === "" || after === "") return null;
  return compareWords(formatValue(before).slice(0, TEXT_MAX), formatValue(after).slice(0, TEXT_MAX));
}

function Marked({ segments, hides }: { segments: readonly Segment[]; hides?: Segment["kind"] }): JSX.Element {
  return (
    <bdi class="content">
      {segments
        .filter((segment) => segment.kind !== hides)
        .map((segment, index) => {
          const text = visible(segment.text);
          if (segment.kind === "removed") return <del key={index} class="word">{text}</del>;
          if (segment.kind === "added") return <ins key={index} class="word">{text}</ins>;
          return <span key={index}>{text}</span>;
        })}
    </bdi>
  );
}

/** A value that was there before a change, with what the change removed marked. */
export function Before({ before, after }: { before: unknown; after: unknown }): JSX.Element {
  const segments = useMemo(() => segmentsOf(before, after), [before, after]);
  if (segments !== null) return <Marked segments={segments} hides="added" />;
  return (
    <del class="word">
      <Value value={before} max={TEXT_MAX} />
    </del>
  );
}

/** A value that is there after a change, with what the change added marked. */
export function After({ before, after }: { before: unknown; after: unknown }): JSX.Element {
  const segments = useMemo(() => segmentsOf(before, after), [before, after]);
  if (segments !== null) return <Marked segments={segments} hides="removed" />;
  return (
    <ins class="word">
      <Value value={after} max={TEXT_MAX} />
    </ins>
  );
}

const SUMMARY_MAX = 300;
const CONTEXT = 24;

/** A change on one line: what is the same is shortened. */
export function Summary({ before, after }: { before: unknown; after: unknown }): JSX.Element {
  const segments = segmentsOf(cut(before), cut(after));
  if (segments === null) {
    return (
      <>
        <del class="word">
          <Value value={before} max={SUMMARY_MAX} />
        </del>{" "}
        <span aria-hidden="true">→</span>{" "}
        <ins class="word">
          <Value value={after} max={SUMMARY_MAX} />
        </ins>
      </>
    );
  }
  const short = segments.map((segment, index) => {
    if (segment.kind !== "same" || segment.text.length <= 2 * CONTEXT) return segment;
    const head = index === 0 ? "" : segment.text.slice(0, CONTEXT);
    const tail = index === segments.length - 1 ? "" : segment.text.slice(-CONTEXT);
    return { ...segment, text: `${head}…${tail}` };
  });
  return <Marked segments={short} />;
}

function cut(value: unknown): unknown {
  return typeof value === "string" ? value.slice(0, SUMMARY_MAX * 4) : value;
}
