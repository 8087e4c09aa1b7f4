/** The page that asks for a token. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { request } from "../api/client";
import { useAction } from "../api/hooks";
import { forgetToken, readToken, storeToken } from "../session";
import { Failure } from "../ui/status";

export function LoginPage({ onLogin }: { onLogin: () => void }): JSX.Element {
  const [token, setToken] = useState("");
  const [wasRefused] = useState(readToken() !== null);
  const login = useAction(async () => {
    storeToken(token.trim());
    try {
      await request("session");
    } catch (failure) {
      forgetToken();
      throw failure;
    }
    onLogin();
  });
  return (
    <main class="alone">
      <h1>Log in</h1>
      <p>
        This server asks for a token. <code>omnigraph token create --actor NAME</code> makes one. It is kept until this
        tab is closed.
      </p>
      {wasRefused && login.error === null && <p role="status">The token of this tab is no longer accepted.</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void login.run();
        }}
      >
        <label>
          Token
          <input
            type="password"
            name="token"
            autocomplete="current-password"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={login.isRunning}>
          Log in
        </button>
      </form>
      {login.error !== null && <Failure error={login.error} />}
    </main>
  );
}
