/** JSON as the server writes it: whole numbers are exact whatever their size. */

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const reviveWholeNumbers: Reviver = (_key, value, context) => {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
};

/** Parse a document. Integers that a number cannot represent become `bigint`. */
export function parseJson(text: string): unknown {
  // The reviver is slow, and few documents have a number that needs it.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return (JSON.parse as (text: string, reviver: Reviver) => unknown)(text, reviveWholeNumbers);
}

/** Write a document, with every `bigint` as a whole number. */
export function formatJson(value: unknown, indent?: number): string {
  const raw = (JSON as unknown as { rawJSON?: (text: string) => unknown }).rawJSON;
  return JSON.stringify(
    value,
    (_key, part: unknown) => {
      if (typeof part !== "bigint") return part;
      return raw === undefined ? String(part) : raw(String(part));
    },
    indent,
  );
}
