/** Requests to the server that this page is from: one function, and one class of failures. */

import { formatJson, parseJson } from "./json";
import { readToken } from "../session";
import type { Problem } from "./wire";

export type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

export interface RequestOptions {
  method?: "GET" | "POST" | "DELETE";
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** What the server, or the way to it, refused. */
export class ProblemError extends Error {
  constructor(readonly problem: Problem & Record<string, unknown>) {
    super(problem.detail);
    this.name = "ProblemError";
  }

  get status(): number {
    return this.problem.status;
  }

  get code(): string {
    return this.problem.code;
  }
}

/** Called when the server asks for a token; the app shows its login page. */
let onUnauthenticated: () => void = () => undefined;

export function whenUnauthenticated(listener: () => void): void {
  onUnauthenticated = listener;
}

/** The address of a resource of a graph: each part is one segment. */
export function graphPath(graph: string, ...parts: readonly (string | number)[]): string {
  return ["graphs", graph, ...parts].map((part) => encodeURIComponent(String(part))).join("/");
}

/** Send a request, and return the document that answers it. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  return parseJson(await response.text()) as T;
}

/** An answer, or null if it would have rows of a type that the actor may not read. */
export async function unlessHidden<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (failure) {
    if (failure instanceof ProblemError && failure.status === 403) return null;
    throw failure;
  }
}

/** Send a request, and return its response when it succeeded. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  const token = readToken();
  if (token !== null) headers["Authorization"] = `Bearer ${token}`;
  const init: RequestInit = {
    method: options.method ?? (options.body === undefined ? "GET" : "POST"),
    headers,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  };
  if (options.signal !== undefined) init.signal = options.signal;
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = formatJson(options.body);
  }
  const response = await reach(path + formatQuery(options.query), init);
  if (response.ok) return response;
  const error = new ProblemError(await readProblem(response));
  if (error.status === 401) onUnauthenticated();
  throw error;
}

async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    const hint = "Check your connection, and whether the server still runs. Then try again.";
    throw new ProblemError(ownProblem("no_answer", "the server does not answer", hint));
  }
}

/** A problem that this page found itself. */
export function ownProblem(code: string, message: string, hint: string): Problem & Record<string, unknown> {
  const said = { title: code.replace("_", " "), detail: message, error: message, hint };
  return { type: "about:blank", status: 0, code, cause: code, retryable: false, request_id: "", ...said };
}

async function readProblem(response: Response): Promise<Problem & Record<string, unknown>> {
  const text = await response.text();
  try {
    return parseJson(text) as Problem & Record<string, unknown>;
  } catch {
    // A proxy on the way answers with a page of its own.
    const hint = "Try again. If it persists, ask the operator of this server: its log, or that of the proxy before it, says why.";
    const problem = ownProblem("no_document", `the server answered with status ${response.status}`, hint);
    return { ...problem, status: response.status, request_id: response.headers.get("x-request-id") ?? "" };
  }
}

function formatQuery(query: Query | undefined): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === null || value === undefined) continue;
    if (Array.isArray(value)) for (const item of value) parts.append(name, item);
    else parts.append(name, String(value));
  }
  const text = parts.toString();
  return text === "" ? "" : `?${text}`;
}
