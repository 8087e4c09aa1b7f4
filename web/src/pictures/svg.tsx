/** A drawing of the server inside the page: rebuilt element by element, so that it has our colours. */

import { h, type VNode } from "preact";
import { readToken } from "../session";
import { graphPath, ownProblem, ProblemError } from "../api/client";

const ELEMENTS = new Set(["svg", "g", "rect", "path", "polygon", "text", "title", "circle", "line"]);
const ATTRIBUTES = new Set([
  "viewBox", "width", "height", "transform", "x", "y", "rx", "d", "points", "class", "text-anchor", "cx", "cy", "r",
]);
/** Colours of the drawing, in the order in which the package gives them out. */
const COLOURS = ["#2f6feb", "#d1570c", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#0b7285", "#6e7781"];

/** The drawing of a schema, parsed as XML and never as part of the page. */
export function loadSchemaPicture(graph: string, branch: string, signal: AbortSignal): Promise<Document> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", `${graphPath(graph, "schema", "picture")}?styled=false&branch=${encodeURIComponent(branch)}`);
    request.responseType = "document";
    const token = readToken();
    if (token !== null) request.setRequestHeader("Authorization", `Bearer ${token}`);
    const fail = (): void => {
      const what = "the picture of the schema cannot be read";
      const problem = ownProblem("no_picture", what, "the text of the schema says the same");
      const id = request.getResponseHeader("x-request-id") ?? "";
      reject(new ProblemError({ ...problem, status: request.status, request_id: id }));
    };
    request.onload = () => (request.status === 200 && request.responseXML !== null ? resolve(request.responseXML) : fail());
    request.onerror = fail;
    signal.addEventListener("abort", () => request.abort());
    request.send();
  });
}

/** An element of a drawing and all inside it; what is not on the lists is left out. */
export function rebuild(element: Element, key = 0): VNode | null {
  const name = element.localName;
  if (!ELEMENTS.has(name)) return null;
  const attributes: Record<string, unknown> = { key };
  for (const { name: attribute, value } of element.attributes) {
    if (ATTRIBUTES.has(attribute)) attributes[attribute] = value;
  }
  const lane = COLOURS.indexOf(colourOf(element));
  const classes = [element.getAttribute("class") ?? "", lane >= 0 ? `lane-${lane}` : "", name === "rect" ? rectKind(element) : ""];
  attributes["class"] = classes.filter(Boolean).join(" ");
  const children: (VNode | string | null)[] = [];
  element.childNodes.forEach((child, at) => {
    if (child.nodeType === Node.TEXT_NODE) children.push(child.nodeValue);
    else if (child instanceof Element) children.push(rebuild(child, at));
  });
  return h(name, attributes, children);
}

function colourOf(element: Element): string {
  return element.getAttribute("stroke") ?? element.getAttribute("fill") ?? "";
}

/** Rectangles are the ground of the drawing, boxes, and the titles of boxes. */
function rectKind(element: Element): string {
  if (element.getAttribute("width") === "100%") return "ground";
  return element.getAttribute("class") === "box" ? "" : "heading";
}
