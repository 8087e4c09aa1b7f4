/** Entity. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function EntityPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>Entity</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
