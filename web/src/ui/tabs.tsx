/** Tabs, moved through by the arrow keys. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Tab {
  name: string;
  title: ComponentChildren;
}

export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
  children,
}: {
  label: string;
  tabs: readonly Tab[];
  chosen: string;
  onChoose: (name: string) => void;
  /** The panel of the chosen tab. */
  children: ComponentChildren;
}): JSX.Element {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.name === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    onChoose(next.name);
    list.current?.querySelector<HTMLElement>(`[data-tab="${CSS.escape(next.name)}"]`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map((tab) => {
          const isChosen = tab.name === chosen;
          return (
            <button
              key={tab.name}
              type="button"
              role="tab"
              id={`${id}-${tab.name}`}
              data-tab={tab.name}
              aria-selected={isChosen}
              aria-controls={`${id}-panel`}
              tabIndex={isChosen ? 0 : -1}
              onClick={() => onChoose(tab.name)}
            >
              {tab.title}
            </button>
          );
        })}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`}>
        {children}
      </div>
    </>
  );
}
