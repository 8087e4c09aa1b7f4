/** Editing one entity: the values that differ are written to the branch, in one commit. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { graphPath, request } from "../api/client";
import { useAction } from "../api/hooks";
import type { WriteAnswer } from "../api/wire";
import type { NodeType, Property } from "../catalog";
import { parameterValue } from "../query_text";
import { Dialog } from "../ui/dialog";
import { Failure } from "../ui/status";
import { formatValue, visible } from "../ui/text";

/** Types whose values can be typed. Lists, vectors and blobs are written by queries and loads. */
const TYPED = /^(String|Bool|Date|DateTime|[IUF]\d+)$/;
const LONG = 60;

export function editable(type: NodeType): Property[] {
  const key = new Set(type.key ?? []);
  return (type.properties ?? []).filter((each) => !key.has(each.name) && (choicesOf(each) !== null || (typeof each.type === "string" && TYPED.test(each.type))));
}

function choicesOf(property: Property): string[] | null {
  if (property.type === "Bool") return ["true", "false"];
  return typeof property.type === "object" && property.type.enum !== undefined ? property.type.enum : null;
}

/** The type of a parameter for a property; values of enums are texts. */
function parameterType(property: Property): string {
  return typeof property.type === "string" ? property.type : "String";
}

export function EditDialog({
  graph,
  branch,
  type,
  id,
  values,
  onClose,
  onDone,
}: {
  graph: string;
  branch: string;
  type: NodeType;
  id: string;
  values: Record<string, unknown>;
  onClose: () => void;
  onDone: (commit: string | null) => void;
}): JSX.Element {
  const properties = editable(type);
  const [typed, setTyped] = useState<Record<string, string>>(
    Object.fromEntries(properties.map((each) => [each.name, formatValue(values[each.name])])),
  );
  const [message, setMessage] = useState("");
  const changed = properties.filter((each) => typed[each.name] !== formatValue(values[each.name]));
  const save = useAction(async () => {
    const header = changed.map((each) => `, $${each.name}: ${parameterType(each)}${each.nullable === true ? "?" : ""}`);
    const set = changed.map((each) => `${each.name}: $${each.name}`);
    const given = changed.map((each) => {
      const parameter = { name: each.name, type: parameterType(each), isOptional: each.nullable === true };
      return [each.name, parameterValue(parameter, typed[each.name] ?? "")];
    });
    const answer = await request<WriteAnswer>(graphPath(graph, "mutate"), {
      body: {
        query: `query edit($id: String${header.join("")}) { update ${type.name} set { ${set.join("  ")} } where id = $id }`,
        params: { id, ...Object.fromEntries(given) },
        branch,
        message: message.trim() === "" ? null : message.trim(),
      },
    });
    onDone(answer.commit_id);
  });
  return (
    <Dialog title={`Edit on ${visible(branch)}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save.run();
        }}
      >
        {properties.map((each) => (
          <label key={each.name}>
            {visible(each.name)} {each.nullable === true && <span class="dim">empty is null</span>}
            <Field property={each} value={typed[each.name] ?? ""} onInput={(value) => setTyped({ ...typed, [each.name]: value })} />
          </label>
        ))}
        <label>
          Message of the commit
          <input name="message" value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
        </label>
        {save.error !== null && <Failure error={save.error} />}
        <p class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>{" "}
          <button type="submit" class="primary" disabled={save.isRunning || changed.length === 0}>
            Save to {visible(branch)}
          </button>
        </p>
      </form>
    </Dialog>
  );
}

function Field({ property, value, onInput }: { property: Property; value: string; onInput: (value: string) => void }): JSX.Element {
  const choices = choicesOf(property);
  const name = `value-${property.name}`;
  if (choices !== null) {
    return (
      <select name={name} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
        {property.nullable === true && <option value="">null</option>}
        {choices.map((each) => (
          <option key={each} value={each}>
            {visible(each)}
          </option>
        ))}
      </select>
    );
  }
  if (property.type === "String" && (value.length > LONG || value.includes("\n"))) {
    return <textarea name={name} rows={4} value={value} onInput={(event) => onInput(event.currentTarget.value)} />;
  }
  return <input name={name} value={value} onInput={(event) => onInput(event.currentTarget.value)} />;
}
