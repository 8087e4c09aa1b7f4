/** A long list of which only the rows in view are in the page. Every row has the same height. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const OVERSCAN = 8;

export function VirtualList<Item>({
  label,
  items,
  rowHeight,
  height,
  itemKey,
  children,
  reveal,
}: {
  label: string;
  items: readonly Item[];
  /** Pixels of one row. */
  rowHeight: number;
  /** Pixels of the list at most. */
  height: number;
  itemKey: (item: Item, index: number) => string | number;
  children: (item: Item, index: number) => ComponentChildren;
  /** The index of a row to scroll to. */
  reveal?: number;
}): JSX.Element {
  const own = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const shown = Math.min(height, items.length * rowHeight);
  useLayoutEffect(() => {
    if (own.current !== null) own.current.style.height = `${shown}px`;
  }, [shown]);
  useEffect(() => {
    const list = own.current;
    if (list === null || reveal === undefined) return;
    const at = reveal * rowHeight;
    if (at < list.scrollTop) list.scrollTop = at;
    else if (at + rowHeight > list.scrollTop + shown) list.scrollTop = at + rowHeight - shown;
  }, [reveal, rowHeight, shown]);
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const last = Math.min(items.length, Math.ceil((top + shown) / rowHeight) + OVERSCAN);
  return (
    <div
      class="virtual"
      ref={own}
      role="list"
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="spacer" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, offset) => {
          const index = first + offset;
          return (
            <div
              key={itemKey(item, index)}
              role="listitem"
              aria-setsize={items.length}
              aria-posinset={index + 1}
              class="row"
              style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
            >
              {children(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
