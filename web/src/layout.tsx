/** The frame of every page: graph, navigation, search, branch, theme and help. */

import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { graphPath, request } from "./api/client";
import { useLoad } from "./api/hooks";
import type { BranchesAnswer, SessionAnswer } from "./api/wire";
import { allShortcuts, type Shortcut, useShortcuts } from "./keys";
import { goTo, href, hrefWith } from "./router";
import { nextTheme, storeTheme } from "./theme";
import { Dialog } from "./ui/dialog";
import { visible } from "./ui/text";
import { SessionContext } from "./who";

/** Branches that can be chosen; others are reached from their list. */
const BRANCHES_MAX = 100;

const LINKS = [
  { page: "history", title: "History", key: "h" },
  { page: "schema", title: "Schema", key: "s" },
  { page: "query", title: "Query", key: "q" },
  { page: "branches", title: "Branches", key: "b" },
  { page: "proposals", title: "Proposals", key: "p" },
] as const;

/** Pages that the navigation has no link to, and the link that they belong to. */
const BELONGS: Record<string, string> = { commits: "history" };

interface LayoutProps {
  session: SessionAnswer;
  logOut: () => void;
  graph?: string;
  page?: string;
  branch?: string;
  children: ComponentChildren;
}

export function Layout({ session, logOut, graph, page, branch, children }: LayoutProps): JSX.Element {
  const [helps, setHelps] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const address = (name: string): string =>
    hrefWith(["graphs", graph ?? "", name], { branch: branch === "main" ? null : branch });
  const shortcuts: Shortcut[] = [
    { keys: "?", means: "show the keyboard shortcuts", run: () => setHelps(true) },
    { keys: "t", means: "switch between light and dark", run: () => storeTheme(nextTheme()) },
    { keys: "g g", means: "go to the graphs", run: () => goTo(href()) },
  ];
  if (graph !== undefined) {
    shortcuts.push({ keys: "/", means: "search for an entity", run: () => search.current?.focus() });
    for (const link of LINKS) {
      const means = `go to ${link.title.toLowerCase()}`;
      shortcuts.push({ keys: `g ${link.key}`, means, run: () => goTo(address(link.page)) });
    }
  }
  useShortcuts(shortcuts, true);
  const current = BELONGS[page ?? ""] ?? page;
  return (
    <SessionContext.Provider value={session}>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={href()}>
          <img src="./icon.svg" alt="" width="20" height="20" />
          Omnigraph
        </a>
        {graph !== undefined && (
          <>
            <a class="graph" href={address("history")}>
              {visible(graph)}
            </a>
            <nav aria-label="Pages of the graph">
              {LINKS.map((link) => (
                <a
                  key={link.page}
                  href={address(link.page)}
                  aria-current={current === link.page ? "page" : undefined}
                >
                  {link.title}
                </a>
              ))}
            </nav>
            <form
              role="search"
              onSubmit={(event) => {
                event.preventDefault();
                const text = search.current?.value.trim() ?? "";
                if (text !== "") goTo(hrefWith(["graphs", graph, "search"], { q: text, branch: branch === "main" ? null : branch }));
              }}
            >
              <input ref={search} type="search" name="q" aria-label="Search for an entity" placeholder="Search  /" />
            </form>
            {OF_BRANCHES.has(page ?? "history") && <BranchChoice graph={graph} page={page ?? "history"} branch={branch ?? "main"} />}
          </>
        )}
        <span class="rest">
          {session.actor !== null && (
            <span class="actor" title="who acts, by the token of this tab">
              {visible(session.actor)}
            </span>
          )}
          <button type="button" class="plain" title="Light or dark (t)" aria-label="Light or dark" onClick={() => storeTheme(nextTheme())}>
            ◐
          </button>
          <button type="button" class="plain" title="Keyboard shortcuts (?)" aria-label="Keyboard shortcuts" onClick={() => setHelps(true)}>
            ?
          </button>
          {session.actor !== null && (
            <button type="button" class="plain" onClick={logOut}>
              Log out
            </button>
          )}
        </span>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      {helps && (
        <Dialog title="Keyboard shortcuts" onClose={() => setHelps(false)}>
          <dl class="shortcuts">
            {allShortcuts().map((shortcut) => (
              <div key={shortcut.keys}>
                <dt>
                  {shortcut.keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{shortcut.means}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </SessionContext.Provider>
  );
}

function skip(event: Event): void {
  // The address after # is that of a page.
  event.preventDefault();
  document.getElementById("content")?.focus();
}

/** Pages that look at one branch, and stay when another one is chosen. */
const OF_BRANCHES = new Set(["history", "schema", "query", "entities", "search"]);

function BranchChoice({ graph, page, branch }: { graph: string; page: string; branch: string }): JSX.Element {
  const loaded = useLoad(
    (signal) => request<BranchesAnswer>(graphPath(graph, "branches"), { query: { limit: BRANCHES_MAX }, signal }),
    [graph, page],
  );
  const names = (loaded.value?.branches ?? []).map((each) => each.branch);
  // The history is that of all branches, unless one is chosen.
  const showsAll = page === "history";
  const [path = "", query = ""] = location.hash.slice(1).split("?");
  const values = new URLSearchParams(query);
  const chosen = showsAll ? (values.get("branch") ?? "") : branch;
  const choose = (name: string): void => {
    // A branch is looked at as it is now.
    values.delete("at");
    if (name === "" || (name === "main" && !showsAll)) values.delete("branch");
    else values.set("branch", name);
    goTo(`#${path}${values.size > 0 ? `?${values}` : ""}`);
  };
  return (
    <select aria-label="Branch" value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
      {showsAll && <option value="">all branches</option>}
      {!names.includes(branch) && <option value={branch}>{visible(branch)}</option>}
      {names.map((name) => (
        <option key={name} value={name}>
          {visible(name)}
        </option>
      ))}
    </select>
  );
}
