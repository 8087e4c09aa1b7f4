/**
 * What to do about a problem, for a person at this page. The server writes hints for everybody who asks it: they also
 * name commands, headers and arguments in Python.
 */

import type { Problem } from "./wire";

/** By cause: the next step on this page. */
const STEPS: Record<string, string> = {
  graph_not_found: "The page Graphs lists the graphs of this server.",
  merge_conflicts: "Decide each conflict on the tab Conflicts.",
  outcome_unknown: "Look for it on the page History before you repeat it.",
  query_max_rows: "Add a limit to the query.",
  query_memory: "Narrow the pattern of the query, or add a limit.",
  query_timeout: "Narrow the pattern of the query, or add a limit.",
  read_only: "The operator of this server serves the graph read-only.",
  unauthenticated: "Ask the operator of this server for a token.",
};

/** Causes that only whoever runs the server can remove. */
const OF_OPERATORS = new Set([
  "corrupted",
  "embedding_key",
  "embedding_model",
  "engine_unavailable",
  "format",
  "format_too_new",
  "format_too_old",
  "invalid_policy",
  "merge_base_unreadable",
  "not_installed",
  "recovery_needed",
  "storage_denied",
  "uncovered_drift",
  "workers_mismatch",
]);

/** By command: where this page shows the same. */
const PLACES: Record<string, string> = {
  "branch list": "the page Branches",
  "commit list": "the page History",
  "commit show": "the page History",
  log: "the page History",
  "proposal close": "the button Close",
  "proposal list": "the page Proposals",
  "proposal show": "the page of the proposal",
  "queries list": "the stored queries on the page Query",
  "schema show": "the page Schema",
  "tag list": "the page History",
};

/** Hints that name an argument for what is done otherwise here. */
const REWORDED: readonly (readonly [RegExp, string])[] = [
  [/^name one of them: /, "Leave one query in the text."],
  [/\bactor=/, "This needs a name: ask the operator of this server for a token."],
];

const COMMAND = /'omnigraph ([a-z]+)(?: ([a-z]+))?[^']*'/g;
/** Something to run, to install or to set where the server is. */
const RUN_BY_OPERATOR = /'omnigraph |\bomnigraph [a-z]+ [a-z]+\b|\bpip install\b|\bOMNIGRAPH_[A-Z]|\bin the setting\b/;
/** Options of commands, arguments and methods in Python, headers and routes: nothing that this page has. */
const ELSEWHERE =
  /(^|\s)--[a-z]|\bin Python\b|\bgraph\.[a-z_]+[.(]|\bomnigraph\.[A-Z]|=\.\.\.|\w='\w|\/openapi\.json|\b(Authorization|If-Match|Idempotency-Key)\b|\bthe header\b|^(POST|GET) |\bon_error=|^run it with /;

/** What to do next; empty if the message has to do. */
export function hintOf(problem: Problem & Record<string, unknown>): string {
  const { cause } = problem;
  const step = STEPS[cause];
  if (step !== undefined) return step;
  const hint = placed(problem.hint);
  const own = REWORDED.find(([pattern]) => pattern.test(hint));
  if (own !== undefined) return own[1];
  if (hint === "") return "";
  if (OF_OPERATORS.has(cause) || RUN_BY_OPERATOR.test(hint)) return `For the operator of this server: ${hint}`;
  return ELSEWHERE.test(hint) ? "" : hint;
}

/** A hint with places of this page instead of commands. */
function placed(hint: string): string {
  const replaced = hint.replace(COMMAND, (command, first: string, second: string | undefined) => {
    return PLACES[`${first} ${second ?? ""}`.trim()] ?? PLACES[first] ?? command;
  });
  return replaced.replace(/(the page \w+) and \1/g, "$1");
}
