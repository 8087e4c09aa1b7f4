/** A modal dialog: the browser's own, which keeps the focus inside and gives it back. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

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
  useEffect(() => {
    const dialog = own.current;
    if (dialog !== null && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={own} aria-labelledby={label} onClose={onClose}>
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
