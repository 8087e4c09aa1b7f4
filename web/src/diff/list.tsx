/** A list of any number of rows, by their positions: only those in view are in the page. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const OVERSCAN = 10;
/** Browsers cannot show taller elements. */
const HEIGHT_MAX = 16_000_000;

export function IndexedList({
  label,
  total,
  rowHeight,
  selected,
  onView,
  children,
}: {
  label: string;
  total: number;
  /** Pixels of one row. */
  rowHeight: number;
  /** The row that is kept in view. */
  selected: number | null;
  /** Called with the positions in view whenever these change. */
  onView: (first: number, last: number) => void;
  children: (index: number) => ComponentChildren;
}): JSX.Element {
  const own = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const count = Math.min(total, Math.floor(HEIGHT_MAX / rowHeight));
  const measure = (): void => {
    const list = own.current;
    if (list !== null) setView({ top: list.scrollTop, height: list.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [total]);
  useEffect(() => {
    const list = own.current;
    if (list === null || selected === null) return;
    const at = selected * rowHeight;
    if (at < list.scrollTop) list.scrollTop = at;
    else if (at + rowHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = at + rowHeight - list.clientHeight;
    }
  }, [selected, rowHeight]);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
  useEffect(() => onView(first, last), [first, last, onView]);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, offset) => first + offset);
  return (
    <div class="indexed" ref={own} role="list" aria-label={label} tabIndex={0} onScroll={measure}>
      <div class="spacer" style={{ height: `${count * rowHeight}px` }}>
        {shown.map((index) => (
          <div
            key={index}
            role="listitem"
            aria-setsize={total}
            aria-posinset={index + 1}
            class="row"
            style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {children(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
