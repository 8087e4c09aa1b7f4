/** Places for the nodes of a small graph: nodes repel each other, edges pull. The same every time. */

export interface Point {
  x: number;
  y: number;
}

const STEPS = 260;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

/** Places around the origin. The first node stays in the middle. */
export function place(count: number, edges: readonly (readonly [number, number])[], distance: number): Point[] {
  const points = Array.from({ length: count }, (_, index) => {
    const radius = distance * 0.7 * Math.sqrt(index);
    return { x: radius * Math.cos(index * GOLDEN_ANGLE), y: radius * Math.sin(index * GOLDEN_ANGLE) };
  });
  for (let step = 0; step < STEPS; step++) {
    const reach = distance * 0.9 * (1 - step / STEPS) + 0.5;
    const moves = points.map(() => ({ x: 0, y: 0 }));
    repel(points, moves, distance);
    attract(points, moves, edges, distance);
    points.forEach((point, index) => {
      const move = moves[index];
      if (index === 0 || move === undefined) return;
      const length = Math.hypot(move.x, move.y) || 1;
      const share = Math.min(length, reach) / length;
      point.x += move.x * share;
      point.y += move.y * share;
    });
  }
  return points;
}

function repel(points: readonly Point[], moves: Point[], distance: number): void {
  for (let one = 0; one < points.length; one++) {
    for (let other = one + 1; other < points.length; other++) {
      const [a, b, moveA, moveB] = [points[one], points[other], moves[one], moves[other]];
      if (a === undefined || b === undefined || moveA === undefined || moveB === undefined) continue;
      // Labels are wide: what is beside each other needs more room than what is above each other.
      const dx = (a.x - b.x) / 1.5;
      const dy = a.y - b.y;
      const square = dx * dx + dy * dy + 0.01;
      const force = (distance * distance) / square;
      moveA.x += dx * force;
      moveA.y += dy * force;
      moveB.x -= dx * force;
      moveB.y -= dy * force;
    }
  }
}

function attract(points: readonly Point[], moves: Point[], edges: readonly (readonly [number, number])[], distance: number): void {
  for (const [one, other] of edges) {
    const [a, b, moveA, moveB] = [points[one], points[other], moves[one], moves[other]];
    if (a === undefined || b === undefined || moveA === undefined || moveB === undefined) continue;
    const dx = a.x - b.x;
    const dy = a.y - b.y;
    const force = Math.hypot(dx, dy) / distance;
    moveA.x -= dx * force;
    moveA.y -= dy * force;
    moveB.x += dx * force;
    moveB.y += dy * force;
  }
}
