/** Lanes of a history: where each commit is drawn, and the lines that lead down to its parents. */

export interface Drawn {
  commit_id: string;
  parent: string | null;
  merged_parent: string | null;
}

export interface Line {
  /** The row in which the line starts; it ends in the next one. */
  row: number;
  from: number;
  to: number;
  /** The lane whose colour it has. */
  lane: number;
}

export interface Layout {
  /** By row, the lane of its commit. */
  lanes: number[];
  lines: Line[];
  width: number;
}

/** Place commits that come each before its parents. Lines to commits that follow later stay open. */
export function layOut(commits: readonly Drawn[]): Layout {
  let wanted: (string | null)[] = [];
  const lanes: number[] = [];
  const lines: Line[] = [];
  let width = 1;
  commits.forEach((commit, row) => {
    const own = laneOf(wanted, commit.commit_id);
    lanes.push(own);
    const before = wanted;
    wanted = before.map((id) => (id === commit.commit_id ? null : id));
    while (wanted.length <= own) wanted.push(null);
    const started = new Set<number>();
    for (const parent of [commit.parent, commit.merged_parent]) {
      if (parent === null) continue;
      let lane = wanted.indexOf(parent);
      if (lane < 0) {
        lane = wanted[own] === null ? own : freeLane(wanted);
        wanted[lane] = parent;
      } else if (before[lane] === parent) {
        // Another commit leads there already: this one joins its line.
        lines.push({ row, from: own, to: lane, lane: own });
        continue;
      }
      started.add(lane);
    }
    width = Math.max(width, wanted.length, own + 1);
    const next = commits[row + 1];
    const target = next === undefined ? -1 : laneOf(wanted, next.commit_id);
    wanted.forEach((id, lane) => {
      if (id === null) return;
      const to = next !== undefined && id === next.commit_id ? target : lane;
      if (started.has(lane)) lines.push({ row, from: own, to, lane: Math.max(lane, own) });
      if (before[lane] === id) lines.push({ row, from: lane, to, lane });
    });
  });
  return { lanes, lines, width };
}

function laneOf(wanted: readonly (string | null)[], id: string): number {
  const lane = wanted.indexOf(id);
  return lane >= 0 ? lane : freeLane(wanted);
}

function freeLane(wanted: readonly (string | null)[]): number {
  const free = wanted.indexOf(null);
  return free >= 0 ? free : wanted.length;
}
