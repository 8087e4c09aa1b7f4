/** Prints what pages show for each problem of a list in JSON; `tests/browser/test_hints.py` bundles and runs it. */

import { readFileSync } from "node:fs";
import { hintOf } from "../src/api/hints";

const problems = JSON.parse(readFileSync(0, "utf8")) as Parameters<typeof hintOf>[0][];
process.stdout.write(JSON.stringify(problems.map(hintOf)));
