/** The app: who is here, which page is asked for, and the layout around it. */

import type { FunctionComponent, JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ProblemError, request, whenUnauthenticated } from "./api/client";
import { useLoad } from "./api/hooks";
import type { LoginAnswer, SessionAnswer } from "./api/wire";
import { Layout } from "./layout";
import { BranchesPage } from "./pages/branches";
import { CommitPage } from "./pages/commit";
import { EntityPage } from "./pages/entity";
import { GraphsPage } from "./pages/graphs";
import { HistoryPage } from "./pages/history";
import { LoginPage } from "./pages/login";
import type { PageProps } from "./pages/props";
import { ProposalPage } from "./pages/proposal";
import { ProposalsPage } from "./pages/proposals";
import { QueryPage } from "./pages/query";
import { SchemaPage } from "./pages/schema";
import { SearchPage } from "./pages/search";
import { parsePlace, type Place, usePlace } from "./router";
import { forgetToken, storeToken } from "./session";
import { Empty, Failure, Loading } from "./ui/status";

/** The pages of a graph, by the segment of the address after its name. */
const PAGES: Record<string, FunctionComponent<PageProps>> = {
  history: HistoryPage,
  commits: CommitPage,
  schema: SchemaPage,
  query: QueryPage,
  entities: EntityPage,
  branches: BranchesPage,
  search: SearchPage,
  proposals: ProposalsPage,
};

/**
 * Use the code that the address has, if it has one: it is good once, and leaves the address first. `onRefused` is called
 * if the server does not accept it.
 */
async function redeemCode(onRefused: () => void): Promise<void> {
  const place = parsePlace(location.hash);
  const code = place.path[0] === "login" ? place.query.get("code") : null;
  if (code === null) return;
  history.replaceState(null, "", location.pathname);
  try {
    const { token } = await request<LoginAnswer>("session", { body: { code } });
    storeToken(token);
  } catch (failure) {
    if (failure instanceof ProblemError && failure.status === 401) onRefused();
    throw failure;
  }
}

export function App(): JSX.Element {
  const [needsToken, setNeedsToken] = useState(false);
  const [wasLinkRefused, setLinkRefused] = useState(false);
  const place = usePlace();
  useEffect(() => whenUnauthenticated(() => setNeedsToken(true)), []);
  const session = useLoad(async (signal) => {
    await redeemCode(() => setLinkRefused(true));
    return request<SessionAnswer>("session", { signal });
  }, []);
  const onLogin = useCallback(() => {
    setNeedsToken(false);
    setLinkRefused(false);
    session.reload();
  }, []);
  if (needsToken) return <LoginPage wasLinkRefused={wasLinkRefused} onLogin={onLogin} />;
  if (session.state === "failed") {
    return (
      <main class="alone">
        <Failure error={session.error} retry={session.reload} />
      </main>
    );
  }
  if (session.value === undefined) return <Loading />;
  const logOut = (): void => {
    forgetToken();
    location.reload();
  };
  return <Page place={place} session={session.value} logOut={logOut} />;
}

function Page({ place, session, logOut }: { place: Place; session: SessionAnswer; logOut: () => void }): JSX.Element {
  const [root, graph, page = "history", ...path] = place.path;
  const branch = place.query.get("branch") ?? "main";
  const shown = useRef("");
  const address = [...place.path, place.query.get("id") ?? ""].join("/");
  useEffect(() => {
    // Another page starts at its top, and assistive technology reads on from there.
    if (shown.current !== "" && shown.current !== address) {
      scrollTo(0, 0);
      const content = document.getElementById("content");
      // A page may have given the focus to a field of its own.
      if (content?.contains(document.activeElement) === false) content.focus({ preventScroll: true });
    }
    shown.current = address;
    document.title = graph === undefined ? "Omnigraph" : `${[page, ...path].join(" ")} · ${graph}`;
  }, [address]);
  if (root !== "graphs" || graph === undefined) {
    return (
      <Layout session={session} logOut={logOut}>
        <GraphsPage session={session} />
      </Layout>
    );
  }
  const Shown = page === "proposals" && path.length > 0 ? ProposalPage : PAGES[page];
  const props = { graph, branch, path, query: place.query };
  return (
    <Layout session={session} logOut={logOut} graph={graph} page={page} branch={branch}>
      {Shown === undefined ? (
        <Empty>There is no page {page}.</Empty>
      ) : (
        // Another graph, commit or entity is another page: nothing of the former one stays.
        <Shown key={`${page} ${address}`} {...props} />
      )}
    </Layout>
  );
}
