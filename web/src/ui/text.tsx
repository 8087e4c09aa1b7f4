/** Content of a graph as text: nothing in it can act on the page or hide what it is. */

import type { JSX } from "preact";
import { formatJson } from "../api/json";

/** Control characters, and those that change the direction or visibility of their neighbours. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

/** A text in which every hidden character is named, such as `⟨U+202E⟩`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** A text of the graph, isolated from the direction of what is around it. */
export function Text({ value, max }: { value: string; max?: number }): JSX.Element {
  const shown = max !== undefined && value.length > max ? `${value.slice(0, max)}…` : value;
  return <bdi class="content">{visible(shown)}</bdi>;
}

const VALUE_MAX = 2_000;

/** A value of a property, as in the command line. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return formatJson(value);
}

/** A value of a property. Null is named, so that it differs from an empty text. */
export function Value({ value, max = VALUE_MAX }: { value: unknown; max?: number }): JSX.Element {
  if (value === null || value === undefined) return <span class="null">null</span>;
  if (value === "") return <span class="null">empty</span>;
  if (typeof value === "number" || typeof value === "bigint") {
    return <span class="number">{formatValue(value)}</span>;
  }
  return <Text value={formatValue(value)} max={max} />;
}

/** A commit's id, short; the whole one is its title. */
export function shortId(id: string): string {
  return id.slice(-8);
}

const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** A time of the server, in the time zone of the reader. */
export function Time({ at }: { at: string }): JSX.Element {
  const time = new Date(at);
  const text = Number.isNaN(time.getTime()) ? at : TIME.format(time);
  return (
    <time dateTime={at} title={at}>
      {text}
    </time>
  );
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
