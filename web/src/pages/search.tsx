/** Search. */

import type { JSX } from "preact";
import { Empty } from "../ui/status";
import type { PageProps } from "./props";

export function SearchPage(_props: PageProps): JSX.Element {
  return (
    <>
      <h1>Search</h1>
      <Empty>This page is being built.</Empty>
    </>
  );
}
