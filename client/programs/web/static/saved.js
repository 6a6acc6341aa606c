// What was saved on purpose in a project and holds now, by kind, each with whose words it is and what a person does.

import { change, confirm, isMine, pin, remove, useDraft } from "./one.js";
import { show, useCall, useCalls, useEffect, useKeys, useState } from "./hooks.js";
import { about, badge, button, dim, field, html, list, origin, row, section, time } from "./parts.js";
import { sortBySubject } from "./subjects.js";
import { count, number } from "./text.js";

const TYPES = {
  Rules: ["rule", "convention", "policy", "constraint", "correction", "behavior"],
  Preferences: ["preference", "goal"],
  Decisions: ["decision"],
  Lessons: ["lesson", "mistake-pattern", "best-practice"],
};
const STORES = ["langgraph", "langgraph part", "openai-agents"]; // what adapters keep for programs is found, not told
const PINNED = { "memory.pinned": true };
const SAVED = {
  $or: [{ "memory.origin": { $in: ["person", "agent"] } }, { "memory.confirmed_at": { $exists: true } }],
  $not: { "memory.source": { $in: STORES } },
  "memory.pinned": false,
};
const KINDS = ["created", "updated", "deleted", "moved"];
const FEW = 8; // of a group that are shown first
const MORE = 20;
const FACTS = "Facts";
const MOST = 200; // facts of which subjects are made

// Each group: its title and which memories are in it.
const GROUPS = [
  ["Always shown", PINNED],
  ...Object.entries(TYPES).map(([title, types]) => [title, { ...SAVED, "memory.type": { $in: types } }]),
  [FACTS, { $and: [SAVED, { $not: { "memory.type": { $in: Object.values(TYPES).flat() } } }] }],
];

export function Saved({ namespace }) {
  const [words, write] = useState("");
  const [limits, setLimits] = useState({});
  const within = { namespace, reach: "exact", words };
  const calls = GROUPS.map(([title, where]) => ["list", { ...within, where, limit: limits[title] || FEW }]);
  const answer = useCalls(calls, { kinds: KINDS });
  const showMore = (title) => setLimits({ ...limits, [title]: (limits[title] || FEW) + MORE });
  useRowKeys();
  return html`<section aria-label="What holds now"><h2>What holds now</h2>
    ${field("Only with these words", words, write, write, { class: "filter" })}
    ${show(answer, (pages) => {
      const groups = pages.map((page, index) => {
        const [title, where] = GROUPS[index];
        const isMany = title === FACTS && page.total > FEW && !words;
        return isMany ? html`<${Subjects} fields=${{ ...within, where }} />` : showGroup(title, page, showMore);
      });
      return pages.some((page) => page.total)
        ? groups
        : dim(words ? "No memory matches." : "Nothing was saved here yet.");
    })}</section>`;
}

const rows = (memories) => list(memories, (memory) => html`<${Row} memory=${memory} />`);

function showGroup(title, { memories, total }, showMore) {
  if (!total) return null;
  const rest = total - memories.length;
  const more = rest > 0 && button(`Show more of ${number(rest)}`, () => showMore(title));
  return section(`${title} (${number(total)})`, rows(memories), more);
}

// Facts by what they are about; those of one subject are shown when it is opened.
function Subjects({ fields }) {
  const [opened, open] = useState("");
  const answer = useCall("list", { ...fields, limit: MOST }, { kinds: KINDS });
  const subject = ([name, own]) => {
    const isOpen = opened === name;
    const turn = () => open(isOpen ? "" : name);
    const title = button(`${name} (${number(own.length)})`, turn, {
      class: "link what",
      "aria-expanded": isOpen,
      "data-row": name,
    });
    return html`<div class="saved" key=${name}>${title}${isOpen && rows(own)}</div>`;
  };
  return show(answer, ({ memories, total }) => {
    const older = total > memories.length && dim(`and ${number(total - memories.length)} older: find them by words`);
    return section(`${FACTS} (${number(total)})`, sortBySubject(memories).map(subject), older);
  });
}

// What keys do to the row that has the focus, by its id.
const handlers = new Map();
const here = (act) => () => {
  const row = handlers.get(document.activeElement.dataset.row);
  return row ? row[act]() : false;
};

function useRowKeys() {
  useKeys({ e: here("edit"), p: here("pin"), c: here("confirm"), "#": here("remove") }, 2);
}

function Row({ memory }) {
  const { id } = memory;
  const draft = useDraft(memory);
  const acts = {
    edit: draft.begin,
    pin: () => pin(memory),
    confirm: () => !isMine(memory) && confirm(id),
    remove: () => remove([id]),
  };
  useEffect(() => {
    handlers.set(id, acts);
    return () => handlers.delete(id);
  });
  const end = () => change(id, "It is over", { expires_at: Date.now() / 1000 });
  const facts = about(
    memory.pinned && badge("pinned", "pin"),
    memory.pinned && badge(memory.type),
    html`<span class=${isMine(memory) ? "good" : "warn"}>${origin(memory)}</span>`,
    time(memory.created_at),
    memory.contradicts.length > 0 && `disagrees with ${count(memory.contradicts.length, "other")}`,
  );
  return html`<article class="saved">
    ${draft.isOpen ? draft.editor() : row(id, memory.content, { class: "text clamp" })}${facts}
    <div class="acts">${!isMine(memory) && button("Confirm", acts.confirm, { title: "It is right: sessions are shown it as yours" })}
      ${button("Edit", acts.edit)}${button(memory.pinned ? "Unpin" : "Pin", acts.pin)}
      ${button("Over", end, { title: "It no longer holds: it is kept, but searches leave it out" })}
      ${button("Delete", acts.remove)}</div></article>`;
}
