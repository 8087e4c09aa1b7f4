/** The graphs that the server has. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useLoad } from "../api/hooks";
import type { SessionAnswer, SnapshotAnswer } from "../api/wire";
import { href } from "../router";
import { Empty, Show } from "../ui/status";
import { plural, Time, visible } from "../ui/text";

export function GraphsPage({ session }: { session: SessionAnswer }): JSX.Element {
  const [only] = session.graphs;
  useEffect(() => {
    // Where there is no choice, nobody is asked; the address is replaced, so that "back" works.
    if (session.graphs.length === 1 && only !== undefined && location.hash === "") {
      location.replace(href("graphs", only, "history"));
    }
  }, []);
  return (
    <>
      <h1>Graphs</h1>
      {session.graphs.length === 0 && <Empty>This server has no graph that you may read.</Empty>}
      <ul class="cards">
        {session.graphs.map((name) => (
          <GraphCard key={name} name={name} />
        ))}
      </ul>
    </>
  );
}

function GraphCard({ name }: { name: string }): JSX.Element {
  const loaded = useLoad((signal) => request<SnapshotAnswer>(graphPath(name, "snapshot"), { signal }), [name]);
  return (
    <li class="card">
      <h2>
        <a href={href("graphs", name, "history")}>{visible(name)}</a>
      </h2>
      <Show loaded={loaded}>
        {(snapshot) => {
          const rows = snapshot.tables.reduce((sum, table) => sum + Number(table["row_count"] ?? 0), 0);
          return (
            <p class="dim">
              {plural(snapshot.tables.length, "type")}, {plural(rows, "row")}; last change{" "}
              <Time at={String(snapshot.commit["created_at"])} />
            </p>
          );
        }}
      </Show>
    </li>
  );
}
