/** Differences of two texts, word by word. */

export interface Segment {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Words, blanks, and single characters of scripts that put no blanks between words. */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}]|[\p{L}\p{M}\p{N}_]+|\s+|./gsu;

/** Beyond these, what lies between the common start and end counts as replaced. */
const WORDS_MAX = 20_000;
const EDITS_MAX = 400;

/** How one text becomes another: parts that are in both, in the first alone, or in the second. */
export function compareWords(before: string, after: string): Segment[] {
  if (before === after) return before === "" ? [] : [{ kind: "same", text: before }];
  const old = before.match(WORDS) ?? [];
  const now = after.match(WORDS) ?? [];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end += 1;
  }
  const head = old.slice(0, start).join("");
  const tail = old.slice(old.length - end).join("");
  const middle = compareLists(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return join([{ kind: "same", text: head }, ...middle, { kind: "same", text: tail }]);
}

/** Myers' shortest edit script, given up when there are too many edits to be of help. */
function compareLists(old: readonly string[], now: readonly string[]): Segment[] {
  const replaced: Segment[] = [
    { kind: "removed", text: old.join("") },
    { kind: "added", text: now.join("") },
  ];
  if (old.length === 0 || now.length === 0 || old.length + now.length > WORDS_MAX) return replaced;
  const most = Math.min(old.length + now.length, EDITS_MAX);
  const ends = new Int32Array(2 * most + 3);
  const middle = most + 1;
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(ends.slice());
    for (let line = -edits; line <= edits; line += 2) {
      const down = line === -edits || (line !== edits && ends[middle + line - 1]! < ends[middle + line + 1]!);
      let at = down ? ends[middle + line + 1]! : ends[middle + line - 1]! + 1;
      while (at < old.length && at - line < now.length && old[at] === now[at - line]) at += 1;
      ends[middle + line] = at;
      if (at >= old.length && at - line >= now.length) return follow(old, now, trace, middle);
    }
  }
  return replaced;
}

function follow(
  old: readonly string[],
  now: readonly string[],
  trace: readonly Int32Array[],
  middle: number,
): Segment[] {
  const found: Segment[] = [];
  let at = old.length;
  let to = now.length;
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const ends = trace[edits]!;
    const line = at - to;
    const down = line === -edits || (line !== edits && ends[middle + line - 1]! < ends[middle + line + 1]!);
    const from = down ? line + 1 : line - 1;
    const lastAt = edits === 0 ? 0 : ends[middle + from]!;
    const lastTo = edits === 0 ? 0 : lastAt - from;
    while (at > lastAt && to > lastTo && at > 0 && to > 0 && old[at - 1] === now[to - 1]) {
      at -= 1;
      to -= 1;
      found.push({ kind: "same", text: old[at]! });
    }
    if (edits === 0) break;
    if (down) {
      to -= 1;
      found.push({ kind: "added", text: now[to]! });
    } else {
      at -= 1;
      found.push({ kind: "removed", text: old[at]! });
    }
  }
  return found.reverse();
}

/** Neighbours of a kind as one; of a replacement, what was removed is before what was added. */
function join(segments: readonly Segment[]): Segment[] {
  const found: Segment[] = [];
  let removed = "";
  let added = "";
  const flush = (): void => {
    if (removed !== "") found.push({ kind: "removed", text: removed });
    if (added !== "") found.push({ kind: "added", text: added });
    removed = "";
    added = "";
  };
  segments.forEach((segment, index) => {
    if (segment.text === "") return;
    if (segment.kind === "removed") removed += segment.text;
    else if (segment.kind === "added") added += segment.text;
    else {
      const next = segments[index + 1];
      const isBlankWithin = (removed !== "" || added !== "") && /^\s+$/.test(segment.text);
      if (isBlankWithin && next !== undefined && next.kind !== "same") {
        // A blank between two replaced words is read as part of the replacement.
        removed += segment.text;
        added += segment.text;
        return;
      }
      flush();
      const last = found.at(-1);
      if (last?.kind === "same") last.text += segment.text;
      else found.push({ ...segment });
    }
  });
  flush();
  return found;
}
