/** A picture of some nodes and the edges between them. Never of a whole graph: callers bound it. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { hrefWith } from "../router";
import { visible } from "../ui/text";
import { place } from "./force";

export const PICTURE_NODES_MAX = 150;

export interface PictureNode {
  type: string;
  id: string;
  label: string;
  /** Where it leads, if it is not an entity. */
  href?: string;
}

export interface PictureEdge {
  source: string;
  target: string;
  label: string;
  /** Whether it stands for a path of several edges. */
  isPath?: boolean;
}

export function nodeKey(type: string, id: string): string {
  return `${type}\u0000${id}`;
}

const DISTANCE = 88;
const LABEL_MAX = 22;
const MARGIN_X = 90;
const MARGIN_Y = 34;
const RADIUS = 9;

export function GraphPicture({
  graph,
  branch,
  at: commit = null,
  nodes,
  edges,
  label,
}: {
  graph: string;
  branch: string;
  /** The commit that the picture is of; null is the tip of the branch. */
  at?: string | null;
  /** By `nodeKey`; the first one is in the middle. */
  nodes: ReadonlyMap<string, PictureNode>;
  edges: readonly PictureEdge[];
  label: string;
}): JSX.Element {
  const keys = [...nodes.keys()];
  const index = new Map(keys.map((key, at) => [key, at]));
  const pairs = edges.flatMap((edge): [number, number][] => {
    const [one, other] = [index.get(edge.source), index.get(edge.target)];
    return one === undefined || other === undefined || one === other ? [] : [[one, other]];
  });
  const signature = JSON.stringify([keys, pairs]);
  const points = useMemo(() => place(keys.length, pairs, DISTANCE), [signature]);
  const types = [...new Set([...nodes.values()].map((node) => node.type))].sort();
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right] = [Math.min(0, ...xs) - MARGIN_X, Math.max(0, ...xs) + MARGIN_X];
  const [top, bottom] = [Math.min(0, ...ys) - MARGIN_Y, Math.max(0, ...ys) + MARGIN_Y];
  const named = pairs.length <= 40;
  return (
    <figure class="picture">
      <div class="canvas" tabIndex={0} role="region" aria-label={label}>
        <svg
          role="group"
          aria-label={label}
          viewBox={`${left} ${top} ${right - left} ${bottom - top}`}
          width={right - left}
          height={bottom - top}
        >
          {edges.map((edge, at) => {
            const [one, other] = [points[index.get(edge.source) ?? -1], points[index.get(edge.target) ?? -1]];
            if (one === undefined || other === undefined) return null;
            return <Edge key={at} edge={edge} from={one} to={other} isNamed={named} />;
          })}
          {keys.map((key, at) => {
            const [node, point] = [nodes.get(key), points[at]];
            if (node === undefined || point === undefined) return null;
            const entity = { id: node.id, at: commit, branch: branch === "main" ? null : branch };
            const address = node.href ?? hrefWith(["graphs", graph, "entities", node.type], entity);
            const text = visible(node.label.length > LABEL_MAX ? `${node.label.slice(0, LABEL_MAX)}…` : node.label);
            return (
              <a key={key} href={address} class={`node lane-${types.indexOf(node.type) % 8}${at === 0 ? " first" : ""}`}>
                <title>{visible(node.href === undefined ? `${node.type} ${node.id}` : node.label)}</title>
                <g transform={`translate(${point.x.toFixed(1)} ${point.y.toFixed(1)})`}>
                  <circle r={at === 0 ? RADIUS + 3 : RADIUS} />
                  <text y={at > 0 && point.y >= 0 ? RADIUS + 15 : -RADIUS - 8} text-anchor="middle">
                    {text}
                  </text>
                </g>
              </a>
            );
          })}
        </svg>
      </div>
      <figcaption>
        {types.map((type, at) => (
          <span key={type} class={`legend lane-${at % 8}`}>
            {visible(type)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function Edge({ edge, from, to, isNamed }: { edge: PictureEdge; from: { x: number; y: number }; to: { x: number; y: number }; isNamed: boolean }): JSX.Element {
  if (edge.source === edge.target) {
    return (
      <g class="edge">
        <circle cx={from.x + RADIUS + 4} cy={from.y} r={RADIUS} fill="none" />
        <title>{visible(edge.label)}</title>
      </g>
    );
  }
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const [x, y] = [to.x - ux * (RADIUS + 4), to.y - uy * (RADIUS + 4)];
  const tip = `${x.toFixed(1)},${y.toFixed(1)} ${(x - ux * 7 - uy * 3.5).toFixed(1)},${(y - uy * 7 + ux * 3.5).toFixed(1)} ${(x - ux * 7 + uy * 3.5).toFixed(1)},${(y - uy * 7 - ux * 3.5).toFixed(1)}`;
  return (
    <g class={edge.isPath === true ? "edge path" : "edge"}>
      <line x1={from.x.toFixed(1)} y1={from.y.toFixed(1)} x2={x.toFixed(1)} y2={y.toFixed(1)} />
      <polygon points={tip} />
      {isNamed && (
        <text x={((from.x + to.x) / 2).toFixed(1)} y={((from.y + to.y) / 2 + 3).toFixed(1)} text-anchor="middle">
          {visible(edge.label.slice(0, LABEL_MAX))}
        </text>
      )}
    </g>
  );
}
