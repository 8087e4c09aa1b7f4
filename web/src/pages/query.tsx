/** Query. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function QueryPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>Query</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
