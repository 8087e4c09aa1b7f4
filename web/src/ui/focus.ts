/** Focus for elements that appear: the attribute `autofocus` counts only while a page is loaded. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Give an element the focus as soon as it is there, if that is wanted. */
export function useFocus<E extends HTMLElement>(isWanted = true): RefObject<E | null> {
  const own = useRef<E>(null);
  useLayoutEffect(() => {
    if (isWanted) own.current?.focus();
  }, []);
  return own;
}
