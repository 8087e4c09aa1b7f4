/** Schema. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function SchemaPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>Schema</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
