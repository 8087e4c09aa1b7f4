/** The page that asks for a token. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { type ProblemError, request } from "../api/client";
import { useAction } from "../api/hooks";
import { forgetToken, readToken, storeToken } from "../session";
import { useFocus } from "../ui/focus";
import { Failure } from "../ui/status";

/** What a header can carry. Others are no tokens, and no request can be made with them. */
const SENDABLE = /^[\x21-\x7e]+$/;

export function LoginPage({ wasLinkRefused, onLogin }: { wasLinkRefused: boolean; onLogin: () => void }): JSX.Element {
  const [token, setToken] = useState("");
  const [wasRefused] = useState(readToken() !== null);
  const [isWrong, setWrong] = useState(false);
  const field = useFocus<HTMLInputElement>();
  const why = useId();
  const login = useAction(async () => {
    const given = token.trim();
    const isSendable = SENDABLE.test(given);
    setWrong(!isSendable);
    if (!isSendable) return;
    storeToken(given);
    try {
      await request("session");
    } catch (failure) {
      forgetToken();
      field.current?.focus();
      throw failure;
    }
    onLogin();
  });
  const isRefused = isWrong || login.error?.status === 401;
  return (
    <main class="alone">
      <h1>Log in</h1>
      <p>
        This server needs a token. Ask the operator of the server, who creates one with{" "}
        <code>omnigraph token create --actor NAME</code>. The token is kept until you close this tab.
      </p>
      {!isRefused && login.error === null && <Reason wasLinkRefused={wasLinkRefused} wasRefused={wasRefused} />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void login.run();
        }}
      >
        <label>
          Token
          <input
            ref={field}
            type="password"
            name="token"
            autocomplete="current-password"
            required
            aria-invalid={isRefused}
            aria-describedby={isRefused ? why : undefined}
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={login.isRunning}>
          Log in
        </button>
      </form>
      <div id={why}>{isRefused ? <WrongToken /> : <Other error={login.error} />}</div>
    </main>
  );
}

/** Why the page is shown to somebody who did not come to log in. */
function Reason({ wasLinkRefused, wasRefused }: { wasLinkRefused: boolean; wasRefused: boolean }): JSX.Element | null {
  if (wasLinkRefused) {
    return (
      <p role="status">
        The login link has expired or was used before. Run <code>omnigraph serve --open</code> for a new one, or log in with a
        token.
      </p>
    );
  }
  return wasRefused ? <p role="status">The server no longer accepts the token of this tab: it expired or was revoked.</p> : null;
}

function WrongToken(): JSX.Element {
  return (
    <div class="failure" role="alert">
      <p>The server does not accept this token: it is unknown, expired or revoked.</p>
      <p>Check that you copied all of it, or ask the operator of this server for a new one.</p>
    </div>
  );
}

function Other({ error }: { error: ProblemError | null }): JSX.Element | null {
  return error === null ? null : <Failure error={error} />;
}
