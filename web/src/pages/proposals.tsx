/** The proposals of a graph. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function ProposalsPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>Proposals</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
