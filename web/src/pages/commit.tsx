/** Commit. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function CommitPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>Commit</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
