/** Who uses the app, for every component: `useSession().actor`. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { SessionAnswer } from "./api/wire";

const NOBODY: SessionAnswer = { actor: null, graphs: [], version: "" };

export const SessionContext = createContext<SessionAnswer>(NOBODY);

export function useSession(): SessionAnswer {
  return useContext(SessionContext);
}
