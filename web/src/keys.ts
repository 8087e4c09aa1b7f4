/** Keyboard shortcuts: single keys, and `g` followed by a letter. Never while a person types. */

import { options } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Shortcut {
  /** `?`, `/`, `j`, or `g h`. */
  keys: string;
  /** What it does, as the help shows it. */
  means: string;
  /** Moves, or opens something. It writes nothing: a dialog asks first, since letters are typed by mistake. */
  run: () => void;
}

const PAUSE_MS = 1_200;

/** The shortcuts of one component that is shown. */
interface Layer {
  isFrame: boolean;
  shortcuts: Shortcut[];
}

const layers: Layer[] = [];
let pending: { key: string; at: number } | null = null;

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, textarea, select");
}

/** Whether a key is the element's own: Enter opens the link that has the focus. */
function isOwnKey(event: KeyboardEvent): boolean {
  return event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary") !== null;
}

function onKey(event: KeyboardEvent): void {
  if (isOwnKey(event)) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
  const before = pending !== null && event.timeStamp - pending.at < PAUSE_MS ? `${pending.key} ` : "";
  const wanted = before + event.key;
  const shortcut = findShortcut(wanted);
  pending = null;
  if (shortcut !== undefined) {
    event.preventDefault();
    renderNow(shortcut.run);
  } else if (before === "" && allShortcuts().some((each) => each.keys.startsWith(`${event.key} `))) {
    pending = { key: event.key, at: event.timeStamp };
  }
}

/**
 * Make a change and show it before this returns. The next key may be pressed before the browser gets to anything else,
 * and has to find the text field that has the focus by now, or the dialog that is open.
 */
export function renderNow(change: () => void): void {
  const { debounceRendering } = options;
  let render: (() => void) | undefined;
  options.debounceRendering = (process) => {
    render = process;
  };
  try {
    change();
    render?.();
  } finally {
    if (debounceRendering === undefined) delete options.debounceRendering;
    else options.debounceRendering = debounceRendering;
  }
}

function findShortcut(keys: string): Shortcut | undefined {
  return allShortcuts().find((each) => each.keys === keys);
}

/** Every shortcut that works now: those of the frame, then those of the page. */
export function allShortcuts(): Shortcut[] {
  const ordered = [...layers.filter((layer) => layer.isFrame), ...layers.filter((layer) => !layer.isFrame)];
  // A page may give a key of the frame another meaning, and a part of a page one of the page.
  return [...new Map(ordered.flatMap((layer) => layer.shortcuts).map((each) => [each.keys, each])).values()];
}

/** Have shortcuts while a component is shown. `isFrame` marks those that every page has. */
export function useShortcuts(shortcuts: Shortcut[], isFrame = false): void {
  const own = useRef<Layer>({ isFrame, shortcuts });
  // Before the next key: what a key changed is known to the one that follows at once.
  useLayoutEffect(() => {
    own.current.shortcuts = shortcuts;
  });
  useLayoutEffect(() => {
    if (layers.length === 0) addEventListener("keydown", onKey);
    layers.push(own.current);
    return () => {
      layers.splice(layers.indexOf(own.current), 1);
      if (layers.length === 0) removeEventListener("keydown", onKey);
    };
  }, []);
}
