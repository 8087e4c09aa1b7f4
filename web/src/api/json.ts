/** JSON as the server writes it: whole numbers are exact whatever their size. */

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

/** Texts and numbers of a document; what looks like a number inside of a text is part of the text. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

/** A text that no document has, to mark whole numbers by. */
function makeMark(): string {
  return `whole ${Math.random()} ${Math.random()} `;
}

/** Parse a document. Integers that a number cannot represent become `bigint`. */
export function parseJson(text: string): unknown {
  // Few documents have a number that needs it.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const mark = makeMark();
  const marked = text.replace(TOKENS, (token) =>
    /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
  );
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

/** Write a document, with every `bigint` as a whole number. */
export function formatJson(value: unknown, indent?: number): string {
  const mark = makeMark();
  const text = JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? `${mark}${part}` : part), indent);
  return text.includes(mark) ? text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1") : text;
}
