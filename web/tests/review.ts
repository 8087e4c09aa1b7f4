/** Tests of what the review pages compute without a browser. */

import assert from "node:assert/strict";
import test from "node:test";
import type { ChangedRowAnswer, ConflictAnswer } from "../src/api/wire";
import { changedProperties } from "../src/diff/rows";
import { compareWords, type Segment } from "../src/diff/words";
import { type Decision, placeOf, toResolutions } from "../src/review/decisions";

const side = (segments: readonly Segment[], without: Segment["kind"]): string =>
  segments.filter((segment) => segment.kind !== without).map((segment) => segment.text).join("");

test("words that differ are found, and the others are not", () => {
  assert.deepEqual(compareWords("the quick brown fox jumps", "the slow brown fox leaps far"), [
    { kind: "same", text: "the " },
    { kind: "removed", text: "quick" },
    { kind: "added", text: "slow" },
    { kind: "same", text: " brown fox " },
    { kind: "removed", text: "jumps" },
    { kind: "added", text: "leaps far" },
  ]);
  assert.deepEqual(compareWords("図書館", "図画館")[1], { kind: "removed", text: "書" });
  assert.deepEqual(compareWords("", ""), []);
});

test("the parts of a difference are the two texts, whatever these are", () => {
  // A generator of its own: the same texts every time.
  let state = 7;
  const next = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % below;
  };
  const words = ["a", "b", "cc", " ", "\n", "漢", "\u202e", "👩‍👩‍👧", "x."];
  const text = (): string => Array.from({ length: next(30) }, () => words[next(words.length)]).join("");
  for (let round = 0; round < 3_000; round += 1) {
    const [before, after] = [text(), text()];
    const segments = compareWords(before, after);
    assert.equal(side(segments, "added"), before);
    assert.equal(side(segments, "removed"), after);
    assert.ok(segments.every((segment) => segment.text !== ""));
  }
});

test("texts without an end are compared in time, as replaced if need be", () => {
  const [before, after] = ["word ".repeat(50_000), "other thing ".repeat(50_000)];
  const segments = compareWords(before, after);
  assert.equal(side(segments, "added"), before);
  assert.equal(side(segments, "removed"), after);
});

test("the properties in which a row differs", () => {
  const row = (before: Record<string, unknown> | null, after: Record<string, unknown> | null): ChangedRowAnswer => ({
    kind: "node",
    type: "P",
    op: "update",
    id: "x",
    before,
    after,
  });
  const big = 2n ** 60n;
  assert.deepEqual(changedProperties(row({ id: "x", a: 1, l: [1], n: big }, { id: "x", a: 1, l: [1], n: big + 1n })), ["n"]);
  assert.deepEqual(changedProperties(row({ l: [big] }, { l: [big + 1n] })), ["l"]);
  assert.deepEqual(changedProperties(row(null, { id: "x", a: null, b: "" })), ["b"]);
});

test("decisions are written as the server takes them", () => {
  const conflict = (more: Partial<ConflictAnswer>): ConflictAnswer => ({
    kind: "divergent_update",
    type: "P",
    id: "x",
    property: "a",
    base: null,
    ours: 1,
    theirs: 2,
    message: "",
    ...more,
  });
  const number = conflict({});
  const text = conflict({ id: "y", ours: "1", theirs: "2" });
  const row = conflict({ id: "z", property: null, kind: "delete_vs_update" });
  const schema = conflict({ id: null, kind: "schema", facet: "type" });
  const undecided = conflict({ id: "u" });
  const made = new Map<string, Decision>([
    [placeOf(number), { text: "1152921504606846977", isNull: false }],
    [placeOf(text), { text: "3", isNull: false }],
    [placeOf(row), { take: "theirs" }],
    [placeOf(schema), { take: "ours" }],
  ]);
  assert.deepEqual(toResolutions([number, text, row, schema, undecided], made, "ours"), [
    { type: "P", id: "x", property: "a", value: 2n ** 60n + 1n },
    { type: "P", id: "y", property: "a", value: "3" },
    { type: "P", id: "z", take: "theirs" },
    { type: "P", property: "a", facet: "type", take: "ours" },
    { take: "ours" },
  ]);
  const none = new Map<string, Decision>([[placeOf(text), { text: "kept", isNull: true }]]);
  assert.deepEqual(toResolutions([text], none, null), [{ type: "P", id: "y", property: "a", value: null }]);
});
