// What was said or saved later that seems to change a memory, or disagrees with it: which of the two holds.

import { run } from "./api.js";
import { useCall } from "./hooks.js";
import { about, button, html, link, origin, row, time } from "./parts.js";

const WHO = { user: "said by you", assistant: "said by an agent", "": "saved by you", agent: "saved by an agent" };

// The later statement with what settles it.
export function Later({ memory: { id, later } }) {
  const settle = (text, verdict, back) =>
    run(text, "settle_change", { id, verdict, origin: "person", reach: "all" }, back);
  const both = () => settle("Both hold", "both", () => settle("Open again", "open", both));
  return html`<div class="text">${link(later.id, later.text)}</div>
    ${about(time(later.at), WHO[later.role] ?? `saved (${later.role})`)}
    <div class="acts">
      ${button("The later one holds", () => settle("Replaced by the later one", "new"))}
      ${button("Both hold", both)}
    </div>`;
}

export const Changed = ({ memory }) =>
  html`<article class="hit">${row(memory.id, memory.content, { class: "text" })}
    ${about(origin(memory), time(memory.created_at))}<p class="small">Later:</p><${Later} memory=${memory} /></article>`;

// Two saved memories that disagree. What does not hold is deleted, which undo takes back.
export function Contradiction({ pair: { newer, older } }) {
  const drop = (id, text) => run(text, "delete", { ids: [id], reach: "all" });
  return html`<article class="hit">${row(older.id, older.content, { class: "text" })}
    ${about(origin(older), time(older.created_at))}<p class="small">Disagrees with:</p>
    <div class="text">${link(newer.id, newer.content)}</div>${about(origin(newer), time(newer.created_at))}
    <div class="acts">
      ${button("The newer one holds", () => drop(older.id, "Deleted the older one"))}
      ${button("The older one holds", () => drop(newer.id, "Deleted the newer one"))}
      ${button("Both hold", () => dismiss(newer.id, older.id))}
    </div></article>`;
}

// Say that two memories do not disagree; undoing it says that they do.
export function dismiss(id, other, restore = false) {
  const text = restore ? "They disagree again" : "They do not disagree";
  run(text, "dismiss_link", { id, other, restore, reach: "all" }, () => dismiss(id, other, !restore));
}

export function Disagreeing({ id, other }) {
  const { value } = useCall("get", { id: other, touch: false, reach: "all" });
  return html`<p>${link(other, value?.content)} ${button("They do not disagree", () => dismiss(id, other))}</p>`;
}
