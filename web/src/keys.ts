/** Keyboard shortcuts: single keys, and `g` followed by a letter. Never while a person types. */

import { useEffect } from "preact/hooks";

export interface Shortcut {
  /** `?`, `/`, `j`, or `g h`. */
  keys: string;
  /** What it does, as the help shows it. */
  means: string;
  run: () => void;
}

const PAUSE_MS = 1_200;
const layers: Shortcut[][] = [];
let pending: { key: string; at: number } | null = null;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, textarea, select");
}

function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
  const before = pending !== null && event.timeStamp - pending.at < PAUSE_MS ? `${pending.key} ` : "";
  const wanted = before + event.key;
  const shortcut = findShortcut(wanted);
  pending = null;
  if (shortcut !== undefined) {
    event.preventDefault();
    shortcut.run();
  } else if (before === "" && allShortcuts().some((each) => each.keys.startsWith(`${event.key} `))) {
    pending = { key: event.key, at: event.timeStamp };
  }
}

function findShortcut(keys: string): Shortcut | undefined {
  return layers.findLast((layer) => layer.some((each) => each.keys === keys))?.find((each) => each.keys === keys);
}

/** Every shortcut that works now, those of the page last. */
export function allShortcuts(): Shortcut[] {
  return layers.flat();
}

/** Have shortcuts while a component is shown; those of inner components take precedence. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  useEffect(() => {
    if (layers.length === 0) addEventListener("keydown", onKey);
    layers.push(shortcuts);
    return () => {
      layers.splice(layers.indexOf(shortcuts), 1);
      if (layers.length === 0) removeEventListener("keydown", onKey);
    };
  });
}
