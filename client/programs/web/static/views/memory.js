// All memories as a list of any length, and one of them beside it.

import { call, fail, noteAll, own, run } from "../api.js";
import { go, named, Places, Rows, scope, useEffect, useKeys, useMarks, useNames, useOn, usePages } from "../hooks.js";
import { useReturn, useState, useStats } from "../hooks.js";
import { One, remove } from "../one.js";
import { about, aboutMemory, button, choice, DANGER, dim, empty, field, head, html, loading } from "../parts.js";
import { problem, row, Safe } from "../parts.js";
import { memories, number, place, short } from "../text.js";

const SORTS = [
  ["created", "newest"],
  ["updated", "last changed"],
  ["accessed", "last read"],
  ["count", "most read"],
  ["importance", "importance"],
];
const TIERS = ["L1", "L2", "documents"];
const NEWS = ["created", "deleted", "moved", "promoted"]; // events that change the list
const MOST = 1000; // that are selected at once
const ROW_PX = 58;
const FILTER_MS = 250; // after the last key
const EMPTY = html`<p>There are no memories yet.</p>
  <p>Add one with <code>memctl add "We deploy on Tuesdays"</code>, or let your agent remember:
  ${" "}<code>memctl hooks install claude-code</code>.</p>`;

let kept = { words: "", ns: "", type: "", tier: "", sort: "created" }; // what is listed, when one comes back
const callOf = ({ words, ns, type, tier, sort }) => ({
  ...scope(ns),
  type: type ? [type] : [],
  tier: tier ? [tier] : [],
  sort,
  words,
  all_states: true,
});

export default function Memories({ where: { id } }) {
  const [filter, setFilter] = useState(kept);
  const [fresh, setFresh] = useState(0);
  const pages = usePages(callOf(filter));
  const marks = useMarks((index) => pages.at(index)?.id);
  const set = (change) => {
    kept = { ...filter, ...change };
    setFilter(kept);
  };
  useOn("changed", () => setFresh(0));
  useOn("event", (event) => {
    if (!own.has(event.operation) && NEWS.includes(event.kind)) setFresh((many) => many + event.count);
  });
  const renew = () => {
    setFresh(0);
    pages.reload();
  };
  const removeMarked = async () => {
    const one = document.activeElement.dataset.row || id;
    const ids = marks.ids.length ? marks.ids : [one].filter(Boolean);
    if (!ids.length || !(await remove(ids))) return;
    marks.clear();
    if (ids.includes(id)) go("/memory");
  };
  const leave = () => {
    if (marks.ids.length) return marks.clear();
    return id ? go("/memory") : false;
  };
  useKeys({ "#": removeMarked, Escape: leave });
  useReturn(id);
  const entry = (index) => {
    const memory = pages.at(index);
    if (!memory) return html`<div class="row"><span></span><span class="dim">…</span></div>`;
    const state = `${marks.has(memory.id) ? "on" : ""} ${memory.id === id ? "open" : ""}`;
    return html`<div class=${`row ${state}`}>${marks.box(memory.id, index, `Select ${short(memory.id)}`)}
      <div>${row(memory.id, memory.content.slice(0, 400), { class: "one" })}${aboutMemory(memory)}</div></div>`;
  };
  const isFiltered = filter.words || filter.ns || filter.type || filter.tier;
  return html`<${Tools} filter=${filter} set=${set} total=${pages.total} marks=${marks} />
    ${pages.total === 0 && empty(isFiltered ? "No memory matches." : EMPTY)}
    <div class=${`split ${id ? "read" : "all"}`} hidden=${pages.total === 0 && !id}>
      <div class="list">
        ${fresh > 0 && button(`${number(fresh)} changed`, renew, { class: "new main" })}
        ${pages.error ? problem(pages.error) : pages.total === undefined && loading}
        ${pages.total > 0 && html`<${Rows} total=${pages.total} height=${ROW_PX} row=${entry} label=${memories(pages.total)} />`}
      </div>
      <div class="side">${
        id
          ? html`${about(html`<a href="#/memory">All memories</a>`)}
        <${Safe} key=${id}><${One} id=${id} close=${() => go("/memory")} /><//>`
          : pages.total > 0 && dim(`${memories(pages.total)}. Choose one to read it.`)
      }</div>
    </div>
    ${marks.bar("Selected memories", html`<${Bulk} ids=${marks.ids} />${button("Delete (#)", removeMarked, DANGER)}`)}`;
}

function Tools({ filter, set, total, marks }) {
  const [words, write] = useState(filter.words);
  const stats = useStats();
  const apply = (text) => text !== filter.words && set({ words: text });
  useEffect(() => {
    const waits = setTimeout(apply, FILTER_MS, words);
    return () => clearTimeout(waits);
  }, [words]);
  const markAll = async () => {
    const found = await call("list", { ...callOf(filter), limit: MOST });
    marks.turn(
      found.memories.map((one) => one.id),
      true,
    );
  };
  const pick = (label, name, options, all) =>
    choice(label, filter[name], (value) => set({ [name]: value }), options, all);
  const all = total > MOST ? `Select ${number(MOST)}` : "Select all";
  return head(
    "Memory",
    field("Filter by words", words, write, apply, { type: "search", class: "filter" }),
    html`<${Places} value=${filter.ns} change=${(ns) => set({ ns })} />`,
    pick("Type", "type", Object.keys(stats?.by_type || {}), "all"),
    pick("Tier", "tier", TIERS, "all"),
    pick("Order", "sort", SORTS),
    total > 0 && button(all, () => markAll().catch(fail), { title: `At most the first ${number(MOST)} in this order` }),
  );
}

// The namespaces that enclose others: memories are shared outward.
const enclosing = (names) => [
  ...new Set(names.flatMap(([name]) => name.split("/").map((_, index, parts) => parts.slice(0, index).join("/")))),
];

function Bulk({ ids }) {
  const [tag, type] = useState("");
  const [to, choose] = useState("/");
  const outer = enclosing(useNames()).map((name) => [name || "/", place(name)]);
  const addTag = async (text) => {
    const tags = [text.trim()];
    const operations = [];
    if (!tags[0]) return;
    try {
      for (const id of ids) operations.push((await call("tag", { id, tags, reach: "all" })).operation);
      type("");
    } catch (error) {
      fail(error);
    }
    if (operations.length) noteAll(`Tagged ${memories(operations.length)}`, operations);
  };
  const share = () =>
    run(`Shared ${memories(ids.length)} with ${place(named(to))}`, "share", { ids, to: named(to), reach: "all" });
  return html`${field("Tag for the selected memories", tag, type, addTag, { placeholder: "tag", size: 10 })}
    ${button("Tag", () => addTag(tag))}${choice("Share with", to, choose, outer)}${button("Share", share)}`;
}
