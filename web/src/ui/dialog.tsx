/** A modal dialog: the browser's own, which keeps the focus inside and gives it back. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const own = useRef<HTMLDialogElement>(null);
  const label = useId();
  const isShown = useRef(true);
  // At once: the next key belongs to the dialog. Closed while it is in the page, it gives the focus back.
  useLayoutEffect(() => {
    const dialog = own.current;
    if (dialog !== null && !dialog.open) dialog.showModal();
    return () => {
      isShown.current = false;
      dialog?.close();
    };
  }, []);
  return (
    <dialog
      ref={own}
      aria-labelledby={label}
      onClose={() => {
        if (isShown.current) onClose();
      }}
    >
      <header>
        <h2 id={label}>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}
