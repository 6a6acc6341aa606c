// One memory: read, edited in place, confirmed, pinned, tagged, rated, deleted, erased.

import { call, emit, fail, run, say } from "./api.js";
import { show, useCall, useEffect, useKeys, useOn, useRef, useState } from "./hooks.js";
import { hold, release } from "./keys.js";
import { Disagreeing, Later } from "./later.js";
import { about, aboutMemory, badge, button, DANGER, dim, field, html, PRIMARY, problem, section } from "./parts.js";
import { About, Conversation, Past } from "./past.js";
import { memories, number, plain, short } from "./text.js";

export const remove = (ids) => run(`Deleted ${memories(ids.length)}`, "delete", { ids, reach: "all" });
export const confirm = (id) => run("Confirmed", "confirm", { ids: [id], reach: "all" });
export const isMine = (memory) => memory.origin === "person" || memory.confirmed_at !== null;

export function change(id, text, fields) {
  return run(text, "update", { id, reach: "all", ...fields });
}
export const pin = (memory) => change(memory.id, memory.pinned ? "Unpinned" : "Pinned", { pinned: !memory.pinned });

// A text being edited: `draft` is null while it is not. What is typed after `begin` waits for the field.
export function useDraft(memory) {
  const [draft, set] = useState(null);
  const area = useRef();
  const isOpen = draft !== null;
  const begin = () => {
    if (isOpen) return area.current.focus();
    hold();
    return set(memory.content);
  };
  useEffect(() => {
    if (!isOpen) return;
    area.current.focus();
    area.current.setSelectionRange(draft.length, draft.length);
    release();
  }, [isOpen]);
  const cancel = () => set(null);
  const isSame = isOpen && draft === memory.content;
  const save = async () => {
    if (isSame || (await change(memory.id, "Changed the text", { content: draft }))) cancel();
  };
  const typed = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save();
  const editor = () =>
    html`<textarea ref=${area} aria-label="Text of the memory" value=${draft} onKeyDown=${typed}
        onInput=${(event) => set(event.target.value)}></textarea>
      <div class="acts">${button("Save (Ctrl+Enter)", save, PRIMARY)}${button("Cancel", cancel)}</div>`;
  return { isOpen, isSame, begin, cancel, editor };
}

// `close` leaves it when it is gone.
export function One({ id, close }) {
  const answer = useCall("get", { id, touch: false, reach: "all" });
  const memory = answer.value;
  const draft = useDraft(memory);
  const [plan, setPlan] = useState(null);
  useOn("event", (event) => {
    if (event.id === memory?.id && !draft.isOpen) answer.reload();
  });
  const isFree = memory && !["documents", "L0"].includes(memory.tier); // its text is its own
  const leave = () => {
    if (plan) return setPlan(null);
    return draft.isSame ? draft.cancel() : false; // a draft stays until it is saved or cancelled
  };
  useKeys({ e: () => isFree && draft.begin(), p: () => isFree && pin(memory), Escape: leave }, 2);
  if (answer.error && !memory) return html`${problem(answer.error)}<${Past} id=${id} />`;
  return show(
    answer,
    () => html`<${Title} memory=${memory} />
      ${draft.isOpen ? draft.editor() : html`<p class="text body">${memory.content}</p>`}
      <div class="acts">
        ${isFree && !draft.isOpen && html`<${Acts} memory=${memory} edit=${draft.begin} />`}
        ${memory.tier !== "documents" && html`<${Removing} memory=${memory} close=${close} ask=${setPlan} />`}
      </div>
      ${plan && html`<${Erasing} id=${id} plan=${plan} close=${close} keep=${() => setPlan(null)} />`}
      ${isFree && html`<${Tags} memory=${memory} />`}
      ${memory.later && section("Changed later?", html`<${Later} memory=${memory} />`)}
      ${
        memory.contradicts.length > 0 &&
        section(
          "Disagrees with",
          memory.contradicts.map((other) => html`<${Disagreeing} key=${other} id=${id} other=${other} />`),
        )
      }
      <${Conversation} memory=${memory} /><${About} memory=${memory} />
      ${memory.tier !== "L0" && html`<${Past} id=${id} />`}`,
  );
}

function Title({ memory }) {
  const copy = () => {
    navigator.clipboard?.writeText(memory.id);
    say("Copied the id.");
  };
  const lines = memory.start_line ? `:${memory.start_line}–${memory.end_line}` : "";
  return html`${about(button(short(memory.id), copy, { class: "link mono", title: "Copy the id" }), aboutMemory(memory))}
    ${
      memory.tier === "documents" &&
      dim(
        "A part of ",
        html`<code>${memory.path}${lines}</code>`,
        ". Edit the file: what it says is what is remembered.",
      )
    }
    ${memory.tier === "L0" && dim("A turn of a conversation, still in L0: it becomes a memory when it leaves it.")}`;
}

function Acts({ memory, edit }) {
  const rate = (useful) => () =>
    run(useful ? "Rated as useful" : "Rated as not useful", "feedback", { id: memory.id, useful, reach: "all" });
  return html`${button("Edit (e)", edit)}
    ${button(`${memory.pinned ? "Unpin" : "Pin"} (p)`, () => pin(memory), { "aria-pressed": memory.pinned })}
    ${!isMine(memory) && button("Confirm", () => confirm(memory.id), { title: "It is right: sessions are shown it as yours" })}
    ${button("Useful", rate(true))}${button("Not useful", rate(false))}`;
}

const erase = (id, dry_run) => call("erase", { ids: [id], reach: "all", dry_run });

function Removing({ memory: { id }, close, ask }) {
  const removeIt = async () => (await remove([id])) && close();
  return html`${button("Delete (#)", removeIt, DANGER)}
    ${button("Erase…", () => erase(id, true).then(ask, fail), DANGER)}`;
}

// What erasing would take, before it does.
function Erasing({ id, plan, close, keep }) {
  const eraseIt = async () => {
    await erase(id, false);
    say("Erased for good.");
    emit("changed");
    close();
  };
  const made = plan.derived.length ? ` and ${number(plan.derived.length)} made of it` : "";
  const copies = number(plan.copies.length);
  return html`<div class="panel" role="region" aria-label="Erase">
    ${dim(`This erases ${memories(plan.count)}${made} for good, with its history: no undo brings it back.`)}
    ${plan.copies.length > 0 && dim(`Copies of the database that still hold it: ${copies}; memctl erase --copies rewrites them.`)}
    <div class="acts">${button("Erase for good", () => eraseIt().catch(fail), DANGER)}${button("Keep it", keep)}</div></div>`;
}

function Tags({ memory: { id, metadata } }) {
  const [word, type] = useState("");
  const tags = [metadata.tags || []].flat();
  const add = async (text) => {
    const tag = text.trim();
    if (tag && (await run(`Tagged with ${tag}`, "tag", { id, tags: [tag], reach: "all" }))) type("");
  };
  const drop = (tag) =>
    change(id, `Removed the tag ${tag}`, { metadata: { tags: tags.filter((other) => other !== tag) } });
  const entry = (tag) =>
    badge([plain(tag), " ", button("×", () => drop(tag), { class: "link", "aria-label": `Remove the tag ${tag}` })]);
  return html`<div class="acts">${tags.map(entry)}${field("Add a tag", word, type, add, { size: 10 })}</div>`;
}
