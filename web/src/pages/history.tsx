/** History. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function HistoryPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>History</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
