/** What every page of a graph is given. */

export interface PageProps {
  graph: string;
  /** The branch that the person looks at. */
  branch: string;
  /** Segments of the address after the name of the page. */
  path: readonly string[];
  query: URLSearchParams;
}
