/** The token of this tab. It is kept until the tab is closed, and is never part of an address. */

const KEY = "omnigraph.token";

export function readToken(): string | null {
  return sessionStorage.getItem(KEY);
}

export function storeToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY);
}
