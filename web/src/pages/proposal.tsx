/** One proposal: its changes, conflicts, comments and approvals. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function ProposalPage({ path }: PageProps): JSX.Element {
  return (
    <>
      <h1>Proposal {path[0]}</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
