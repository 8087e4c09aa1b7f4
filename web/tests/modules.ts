/** Tests of modules that need no page; `tests/browser/test_modules.py` bundles and runs them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ProblemError, unlessHidden } from "../src/api/client";
import { formatJson, parseJson } from "../src/api/json";
import type { Catalog } from "../src/catalog";
import { place } from "../src/pictures/force";
import { layOut } from "../src/pictures/lanes";
import { isMutation, parametersOf, parameterValue, picturePlan } from "../src/query_text";
import { href, hrefWith, parsePlace } from "../src/router";
import { visible } from "../src/ui/text";

const CATALOG: Catalog = {
  nodes: [{ name: "Person" }, { name: "City" }],
  edges: [
    { name: "Knows", source: "Person", target: "Person" },
    { name: "LivesIn", source: "Person", target: "City" },
  ],
};

function drawn(match: string): { nodes: string; edges: string } | null {
  const plan = picturePlan(`query q($x: String) { match { ${match} } return { $p } }`, CATALOG);
  if (plan === null) return null;
  const edges = plan.edges.map((edge) => `${edge.source}-${edge.label}${edge.isPath ? "*" : ""}-${edge.target}`);
  return { nodes: plan.nodes.join(" "), edges: edges.join(" ") };
}

test("a picture has the nodes and edges of the match", () => {
  assert.deepEqual(drawn("$p: Person $p knows $q $q livesIn $c"), { nodes: "p q c", edges: "p-knows-q q-livesIn-c" });
  assert.deepEqual(drawn("$p: Person $p $e:knows $q"), { nodes: "p q", edges: "p-knows-q" });
  assert.deepEqual(drawn('$p: Person {name: "a } $z knows $y"} $p knows{1,3} $q'), { nodes: "p q", edges: "p-knows*-q" });
  assert.deepEqual(drawn("$p <knows> $q"), { nodes: "p q", edges: "p-knows-q" });
});

test("types decide the direction of an edge", () => {
  assert.deepEqual(drawn("$c: City $c livesIn $p"), { nodes: "c p", edges: "p-livesIn-c" });
});

test("what is inside a block, a comment or a condition is not drawn", () => {
  assert.deepEqual(drawn("$p: Person not { $p knows $q } optional { $p knows{1,2} $r }"), { nodes: "p", edges: "" });
  assert.deepEqual(drawn("$p: Person // $p knows $q\n"), { nodes: "p", edges: "" });
  assert.deepEqual(drawn("$p: Person $p.name = $x $p livesIn $_"), { nodes: "p", edges: "" });
  assert.equal(drawn("$p.name = $x"), null);
});

test("parameters are read from the header, and typed as they are declared", () => {
  const [name, count, tags] = parametersOf("query q($name: String, $n: I64?, $tags: [String]) { match { $p: Person } return { $p } }");
  assert.deepEqual(name, { name: "name", type: "String", isOptional: false });
  assert.ok(count !== undefined && tags !== undefined && name !== undefined);
  assert.equal(parameterValue(name, "12"), "12");
  assert.equal(parameterValue(count, "9007199254740993"), 9007199254740993n);
  assert.equal(parameterValue(count, ""), null);
  assert.deepEqual(parameterValue(tags, '["a"]'), ["a"]);
});

test("a text that writes is told from one that reads", () => {
  assert.ok(isMutation('query q() { update Person set { age: 1 } where name = "Ada" }'));
  assert.ok(isMutation("query q() {\n  insert Person { name: \"a\" }\n}"));
  assert.ok(!isMutation('query q() { match { $p: Person {name: "insert City {"} } return { $p } }'));
});

test("whole numbers of any size survive", () => {
  const text = '{"a":1152921504606846977,"b":[0.12345678901234568,-9007199254740993],"c":"x \\" 1152921504606846977","d":12345678901234567000}';
  const value = parseJson(text) as { a: bigint; b: unknown[]; c: string };
  assert.equal(value.a, 1152921504606846977n);
  assert.deepEqual(value.b, [0.12345678901234568, -9007199254740993n]);
  assert.equal(value.c, 'x " 1152921504606846977');
  assert.equal(formatJson(value), text);
  assert.deepEqual(parseJson('[12345678901234567890.0, 1e300, "12345678901234567890"]'), [12345678901234567890, 1e300, "12345678901234567890"]);
});

test("addresses keep names with any characters", () => {
  for (const name of ["a/b", "a?b#c", "100%", "%2F", "ä ☃", "..", "a&b=c+d"]) {
    assert.deepEqual(parsePlace(href("graphs", name)).path, ["graphs", name]);
    assert.equal(parsePlace(hrefWith(["graphs"], { id: name })).query.get("id"), name);
  }
  assert.deepEqual(parsePlace("#/%E0%A4%A").path, ["%E0%A4%A"]);
});

test("hidden characters are named", () => {
  assert.equal(visible("a\u202eb\u0007c\td\n"), "a⟨U+202E⟩b␇c\td\n");
});

test("a merge is drawn by two lines that meet again", () => {
  const commits = [
    { commit_id: "m", parent: "b", merged_parent: "d" },
    { commit_id: "b", parent: "a", merged_parent: null },
    { commit_id: "d", parent: "a", merged_parent: null },
    { commit_id: "a", parent: null, merged_parent: null },
  ];
  const layout = layOut(commits);
  assert.deepEqual(layout.lanes, [0, 0, 1, 0]);
  assert.equal(layout.width, 2);
  const steps = layout.lines.map((line) => `${line.row}:${line.from}>${line.to}`);
  assert.deepEqual(steps, ["0:0>0", "0:0>1", "1:0>0", "1:1>1", "2:1>0", "2:0>0"]);
});

test("every line of a history reaches the next row, whatever the history", () => {
  let seed = 7;
  const random = (bound: number): number => (seed = (seed * 48271) % 2147483647) % bound;
  for (let round = 0; round < 50; round++) {
    const count = 2 + random(40);
    const commits = Array.from({ length: count }, (_, at) => {
      const older = (): string | null => (at + 1 < count ? String(at + 1 + random(Math.min(6, count - at - 1))) : null);
      return { commit_id: String(at), parent: older(), merged_parent: random(4) === 0 ? older() : null };
    });
    const layout = layOut(commits);
    commits.forEach((commit, row) => {
      for (const parent of new Set([commit.parent, commit.merged_parent])) {
        if (parent === null) continue;
        let lanes = new Set([layout.lanes[row]]);
        for (let at = row; at < Number(parent); at++) {
          lanes = new Set(layout.lines.filter((line) => line.row === at && lanes.has(line.from)).map((line) => line.to));
        }
        assert.ok(lanes.has(layout.lanes[Number(parent)]), `${round}: ${commit.commit_id} leads to ${parent}`);
      }
    });
  }
});

test("places are finite, apart from each other, and the same every time", () => {
  const edges = Array.from({ length: 30 }, (_, at) => [0, at + 1] as const);
  const points = place(31, edges, 80);
  assert.deepEqual(points[0], { x: 0, y: 0 });
  assert.deepEqual(place(31, edges, 80), points);
  points.forEach((one, at) => {
    assert.ok(Number.isFinite(one.x) && Number.isFinite(one.y));
    for (const other of points.slice(at + 1)) assert.ok(Math.hypot(one.x - other.x, one.y - other.y) > 20);
  });
});

function refused(status: number): Promise<string[]> {
  const problem = { status, code: "", detail: "", hint: "", request_id: "" };
  return Promise.reject(new ProblemError(problem as ConstructorParameters<typeof ProblemError>[0]));
}

test("an answer about a hidden type is left out, and other failures are not", async () => {
  assert.deepEqual(await unlessHidden(Promise.resolve(["row"])), ["row"]);
  assert.equal(await unlessHidden(refused(403)), null);
  for (const status of [400, 401, 404, 500]) await assert.rejects(unlessHidden(refused(status)));
});
