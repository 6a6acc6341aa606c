// All memories as a list of any length, and one of them: read, edited in place, pinned, tagged, rated, shared, deleted.

import { call, emit, fail, noteAll, own, run, say } from "../api.js";
import { hold, release } from "../keys.js";
import { about, aboutMemory, badge, button, choice, copy, count, danger, dim, draw, empty, field, go, head, html, link, list, loading, main, memories, named, number, part, place, Places, plain, problem, Rows, Safe, scope, short, show, time, useCall, useEffect, useKeys, useMarks, useNames, useOn, usePages, useRef, useReport, useReturn, useState, useStats } from "../ui.js";

const SORTS = [["created", "newest"], ["updated", "last changed"], ["accessed", "last read"], ["count", "most read"], ["importance", "importance"]];
const MOST = 1000; // that are selected at once
const EMPTY = html`<p>There are no memories yet.</p><p>Add one with <code>memctl add "We deploy on Tuesdays"</code>, or let your agent remember: <code>memctl hooks install claude-code</code>.</p>`;
export const remove = (ids) => run(`Deleted ${memories(ids.length)}`, "delete", { ids, reach: "all" });

let kept = { words: "", ns: "", type: "", tier: "", sort: "created" }; // what is listed, when one comes back
export default function Memories({ where: { id } }) {
  const [filter, put] = useState(kept), set = (next) => put((kept = next)), [words, write] = useState(kept.words), [fresh, setFresh] = useState(0), stats = useStats(), { ns, type, tier, sort } = filter;
  const fields = { ...scope(ns), type: type ? [type] : [], tier: tier ? [tier] : [], sort, words: filter.words, all_states: true }, pages = usePages(fields), marks = useMarks((index) => pages.at(index)?.id);
  const pick = (label, name, options, all) => choice(label, filter[name], (value) => set({ ...filter, [name]: value }), options, all);
  const apply = (text) => text !== filter.words && set({ ...filter, words: text });
  useEffect(() => { const waits = setTimeout(apply, 250, words); return () => clearTimeout(waits); }, [words]);
  useOn("changed", () => setFresh(0));
  useOn("event", (event) => !own.has(event.operation) && ["created", "deleted", "moved", "promoted"].includes(event.kind) && setFresh((many) => many + event.count));
  const markAll = () => call("list", { ...fields, limit: MOST }).then((found) => marks.turn(found.memories.map((one) => one.id), true), fail);
  const removeMarked = async () => {
    const ids = marks.ids.length ? marks.ids : [document.activeElement.dataset.row || id].filter(Boolean);
    if (!ids.length || !(await remove(ids))) return;
    marks.clear();
    if (ids.includes(id)) go("/memory");
  };
  useKeys({ "#": removeMarked, Escape: () => (marks.ids.length ? marks.clear() : id ? go("/memory") : false) });
  useReturn(id);
  const row = (index) => {
    const one = pages.at(index);
    return !one ? html`<div class="row"><span></span><span class="dim">…</span></div>` : html`<div class=${`row ${marks.has(one.id) ? "on" : ""} ${one.id === id ? "open" : ""}`}>
      ${marks.box(one.id, index, `Select ${short(one.id)}`)}<div>${link(one.id, one.content.slice(0, 400), { class: "one", "data-row": one.id })}${aboutMemory(one)}</div></div>`;
  };
  return html`${head("Memory", field("Filter by words", words, write, apply, { type: "search", class: "filter" }), html`<${Places} value=${ns} change=${(value) => set({ ...filter, ns: value })} />`, pick("Type", "type", Object.keys(stats?.by_type || {}), "all"), pick("Tier", "tier", ["L1", "L2", "documents"], "all"), pick("Order", "sort", SORTS),
      pages.total > 0 && button(pages.total > MOST ? `Select the first ${number(MOST)}` : "Select all", markAll))}
    ${pages.total === 0 && empty(ns || type || tier || filter.words ? "No memory is like that." : EMPTY)}
    <div class=${`split ${id ? "read" : "all"}`} hidden=${pages.total === 0 && !id}><div class="list">
        ${fresh > 0 && button(`${number(fresh)} changed`, () => { setFresh(0); pages.reload(); }, { class: "new main" })}${pages.error ? problem(pages.error) : pages.total === undefined && loading}
        ${pages.total > 0 && html`<${Rows} total=${pages.total} height=${58} row=${row} label=${memories(pages.total)} />`}</div>
      <div class="side">${id ? html`${about(html`<a href="#/memory">All memories</a>`)}<${Safe} key=${id}><${One} id=${id} close=${() => go("/memory")} /><//>` : pages.total > 0 && dim(`${memories(pages.total)}. Choose one to read it.`)}</div></div>
    ${marks.bar("Selected memories", html`<${Bulk} ids=${marks.ids} />${button("Delete (#)", removeMarked, danger)}`)}`;
}

function Bulk({ ids }) {
  const [tag, type] = useState(""), [to, choose] = useState("/"), names = useNames();
  // Memories are shared outward: with the namespaces that enclose others.
  const outer = [...new Set(names.flatMap(([name]) => name.split("/").map((_, index, parts) => parts.slice(0, index).join("/"))))].map((name) => [name || "/", place(name)]);
  const addTag = async (word) => {
    const operations = [], tags = [word.trim()];
    try { for (const id of tags[0] ? ids : []) operations.push((await call("tag", { id, tags, reach: "all" })).operation); type(""); } catch (error) { fail(error); }
    if (operations.length) noteAll(`Tagged ${memories(operations.length)}`, operations);
  };
  return html`${field("Tag for the selected memories", tag, type, addTag, { placeholder: "tag", size: 10 })}${button("Tag", () => addTag(tag))}${choice("Share with", to, choose, outer)}
    ${button("Share", () => run(`Shared ${memories(ids.length)} with ${place(named(to))}`, "share", { ids, to: named(to), reach: "all" }))}`;
}

// One memory; `close` leaves it when it is gone.
export function One({ id, close }) {
  const answer = useCall("get", { id, touch: false, reach: "all" }), past = useReport("memory", { id }), memory = answer.value;
  const [draft, edit] = useState(null), area = useRef(), editing = draft !== null, [plan, setPlan] = useState(null);
  useOn("event", (event) => { if (event.id === memory?.id && !editing) { answer.reload(); past.reload(); } });
  const begin = () => { hold(); edit(memory.content); }; // what is typed next is for the text
  useEffect(() => { if (editing) { area.current.focus(); area.current.setSelectionRange(draft.length, draft.length); release(); } }, [editing]);
  const file = memory?.tier === "documents", turn = memory?.tier === "L0", free = memory && !file && !turn;
  const send = (text, method, more) => run(text, method, { id, reach: "all", ...more });
  const save = async () => (draft === memory.content || (await send("Changed the text", "update", { content: draft }))) && edit(null);
  const pin = () => send(memory.pinned ? "Unpinned" : "Pinned", "update", { pinned: !memory.pinned });
  const mine = memory && (memory.origin === "person" || memory.confirmed_at !== null);
  const confirm = () => run("Confirmed", "confirm", { ids: [id], reach: "all" });
  const rate = (useful) => () => send(useful ? "Rated as useful" : "Rated as not useful", "feedback", { useful });
  const erase = (dry_run) => call("erase", { ids: [id], reach: "all", dry_run });
  const eraseNow = () => erase(false).then(() => { say("Erased for good."); emit("changed"); close(); }, fail);
  const typed = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && save();
  // Escape leaves the field, then what was not changed; a draft stays until it is saved or cancelled.
  const leave = () => { if (plan) setPlan(null); else if (editing && draft === memory.content) edit(null); else return false; };
  useKeys({ e: () => (editing ? area.current.focus() : free && begin()), p: () => free && pin(), Escape: leave }, 2);
  const more = past.value && draw(past.value);
  if (answer.error && !memory) return html`${problem(answer.error)}${more}`;
  return show(answer, () => html`${about(button(short(id), () => { copy(memory.id); say("Copied the id."); }, { class: "link mono", title: "Copy the id" }), aboutMemory(memory))}
    ${file && dim(html`A part of <code>${memory.path}${memory.start_line ? `:${memory.start_line}–${memory.end_line}` : ""}</code>. Edit the file: what it says is what is remembered.`)}${turn && dim("A turn of a conversation, still in L0: it becomes a memory when it leaves it.")}
    ${!editing ? html`<p class="text body">${memory.content}</p>` : html`<textarea ref=${area} aria-label="Text of the memory" value=${draft} onInput=${(event) => edit(event.target.value)} onKeyDown=${typed}></textarea>
      <div class="acts">${button("Save (Ctrl+Enter)", save, main)}${button("Cancel", () => edit(null))}</div>`}
    <div class="acts">${free && !editing && [button("Edit (e)", begin), button(`${memory.pinned ? "Unpin" : "Pin"} (p)`, pin, { "aria-pressed": memory.pinned }), !mine && button("Confirm", confirm, { title: "It is right; agents are told it as yours" }), button("Useful", rate(true)), button("Not useful", rate(false))]}
      ${!file && [button("Delete (#)", async () => (await remove([id])) && close(), danger), button("Erase…", () => erase(true).then(setPlan, fail), danger)]}</div>
    ${plan && html`<div class="panel" role="region" aria-label="Erase">${dim(`This erases ${memories(plan.count)}${plan.derived.length ? ` and ${number(plan.derived.length)} made of it` : ""} for good, with its history: no undo brings it back.`)}
      ${plan.copies.length > 0 && dim(`Copies of the database that still hold it: ${number(plan.copies.length)}; memctl erase --copies rewrites them.`)}
      <div class="acts">${button("Erase for good", eraseNow, danger)}${button("Keep it", () => setPlan(null))}</div></div>`}
    ${free && html`<${Tags} tags=${[memory.metadata.tags || []].flat()} send=${send} />`}
    ${memory.later && part("Changed later?", html`<${Changed} memory=${memory} />`)}
    ${memory.contradicts.length > 0 && part("Disagrees with", memory.contradicts.map((other) => html`<${Other} key=${other} id=${other} mine=${id} />`))}
    ${more}`);
}

function Tags({ tags, send }) {
  const [word, type] = useState(""), add = async (tag) => tag.trim() && (await send(`Tagged with ${tag.trim()}`, "tag", { tags: [tag.trim()] })) && type("");
  const drop = (tag) => send(`Removed the tag ${tag}`, "update", { metadata: { tags: tags.filter((other) => other !== tag) } });
  return html`<div class="acts">${tags.map((tag) => badge([plain(tag), " ", button("×", () => drop(tag), { class: "link", "aria-label": `Remove the tag ${tag}` })]))}${field("Add a tag", word, type, add, { size: 10 })}</div>`;
}

// What was said or saved later that seems to change a memory, and which of the two holds.
const WHO = { user: "said by you", assistant: "said by an agent", "": "saved" };
export function Changed({ memory: { id, later } }) {
  const settle = (text, verdict, back) => run(text, "settle_change", { id, verdict, origin: "person", reach: "all" }, back);
  const both = () => settle("Both hold", "both", () => settle("Open again", "open", both));
  return html`<div class="text">${link(later.id, later.text)}</div>${about(time(later.at), WHO[later.role])}
    <div class="acts">${button("The later one holds", () => settle("Replaced by the later one", "new"))}${button("Both hold", both)}</div>`;
}

function Other({ id, mine }) {
  const { value } = useCall("get", { id, touch: false, reach: "all" });
  const turn = (restore) => run(restore ? "They disagree again" : "They do not disagree", "dismiss_link", { id: mine, other: id, restore, reach: "all" }, () => turn(!restore));
  return html`<p>${link(id, value?.content)} ${button("They do not disagree", () => turn(false))}</p>`;
}
