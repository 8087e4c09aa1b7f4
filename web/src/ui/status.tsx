/** Loading, failures and emptiness. */

import type { ComponentChildren, JSX } from "preact";
import type { ProblemError } from "../api/client";
import { hintOf } from "../api/hints";
import type { Loaded } from "../api/hooks";
import { visible } from "./text";

export function Loading({ what = "Loading" }: { what?: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      {what}…
    </p>
  );
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

/** A problem: the message as the server wrote it, carets included, then what to do next on this page. */
export function Failure({ error, retry }: { error: ProblemError; retry?: () => void }): JSX.Element {
  const { problem } = error;
  const hint = hintOf(problem);
  return (
    <div class="failure" role="alert">
      <pre tabIndex={0}>{visible(problem.detail)}</pre>
      {hint !== "" && <p>{visible(hint)}</p>}
      <p class="dim">
        {problem.cause}
        {problem.request_id !== "" && <> · request {problem.request_id}</>}
      </p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What was loaded, or why not; the former value stays on the screen while it is loaded again. */
export function Show<T>({
  loaded,
  what,
  children,
}: {
  loaded: Loaded<T> & { reload?: () => void };
  what?: string;
  children: (value: T) => ComponentChildren;
}): JSX.Element {
  if (loaded.state === "failed") {
    return loaded.reload === undefined ? (
      <Failure error={loaded.error} />
    ) : (
      <Failure error={loaded.error} retry={loaded.reload} />
    );
  }
  if (loaded.value === undefined) return what === undefined ? <Loading /> : <Loading what={what} />;
  return (
    <div class="shown" aria-busy={loaded.state === "loading"}>
      {children(loaded.value)}
    </div>
  );
}

/** How many types are left out, because the actor may not read them. */
export function HiddenTypes({ count }: { count: number | undefined }): JSX.Element | null {
  if (!count) return null;
  return (
    <p class="dim" role="note">
      {count === 1 ? "1 type is hidden." : `${count} types are hidden.`}
    </p>
  );
}

/** A short message that assistive technology reads when it appears. */
export function Notice({ kind = "info", children }: { kind?: "info" | "good" | "bad"; children: ComponentChildren }): JSX.Element {
  return (
    <p class={`notice ${kind}`} role="status">
      {children}
    </p>
  );
}
