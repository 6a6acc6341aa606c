// What views keep and follow: answers to calls, events, selections, lists of any length, where the focus was.

import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";
import { call, callAll, on } from "./api.js";
import { button, choice, html, loading, problem, Safe } from "./parts.js";
import { number, place } from "./text.js";

export { useEffect, useRef, useState };
export { useKeys } from "./keys.js";

const PAUSE_MS = 400; // between two answers that events ask for again

export const go = (path) => {
  location.hash = path;
};

export function useOn(name, act) {
  const latest = useRef();
  latest.current = act;
  useEffect(() => on(name, (value) => latest.current(value)), [name]);
}

// What `ask` answers: again when what it depends on changes, after a change here, when the daemon is back, at events
// of `kinds`. An answer stays while the next one is on its way, and when the daemon is away.
export function useAnswer(ask, depends, { kinds = [], wanted = true } = {}) {
  const [answer, set] = useState({});
  const [turn, setTurn] = useState(0);
  const waiting = useRef(0);
  const reload = () => setTurn((value) => value + 1);
  useOn("changed", reload);
  useOn("event", ({ kind }) => {
    if (!kinds.includes(kind) || waiting.current) return;
    waiting.current = setTimeout(() => {
      waiting.current = 0;
      reload();
    }, PAUSE_MS);
  });
  useEffect(() => () => clearTimeout(waiting.current), []);
  useLayoutEffect(() => {
    let current = wanted; // asked at once: an effect would wait for the next frame
    const settle = (found) => current && set(found);
    const isAway = (error) => !error.code || error.code === "unavailable";
    if (wanted) {
      ask().then(
        (value) => settle({ value }),
        (error) => settle((before) => ({ error, value: isAway(error) ? before.value : undefined })),
      );
    }
    return () => {
      current = false;
    };
  }, [...depends, wanted, turn]);
  return { ...answer, reload };
}

export const useCall = (method, fields, options) =>
  useAnswer(() => call(method, fields), [method, JSON.stringify(fields)], options);

// The answers to several calls, given as a list of pairs of a method and its fields, as one list.
export const useCalls = (calls, options) =>
  useAnswer(() => callAll(calls), [JSON.stringify(calls)], options);

export function show({ value, error }, draw) {
  if (value) return draw(value);
  return error ? problem(error) : loading;
}

// Namespaces -----------------------------------------------------------------------------------------------------------

let stats = null; // of the last seconds: several parts of a view ask for them
const forgetStats = () => {
  stats = null;
};

function readStats() {
  if (!stats) {
    stats = call("stats", { reach: "all" });
    stats.then(() => setTimeout(forgetStats, 3000), forgetStats);
  }
  return stats;
}

export const useStats = () => useAnswer(readStats, []).value;
// The namespaces that hold something, as options; the root is written `/`.
export const useNames = () => Object.keys(useStats()?.by_namespace || {}).map((name) => [name || "/", place(name)]);
export const Places = ({ value, change }) => choice("Namespace", value, change, useNames(), "all");
export const named = (chosen) => (chosen === "/" ? "" : chosen);
export const scope = (chosen, reach = "exact") => (chosen ? { namespace: named(chosen), reach } : { reach: "all" });

// The focus ------------------------------------------------------------------------------------------------------------

// It comes back to the row of what was open; where a window is too narrow for both, it goes to what is open, too.
export function useReturn(id) {
  const before = useRef();
  const find = (what) => document.querySelector(`main ${what}`);
  useEffect(() => {
    if (id && !find(".list")?.checkVisibility()) find(".side :is(a, button)")?.focus();
    else if (before.current && !id) find(`.list [data-row="${CSS.escape(before.current)}"]`)?.focus();
    before.current = id;
  }, [id]);
}

// Selections -----------------------------------------------------------------------------------------------------------

// What is selected of a list: `box` is the check box of one, with Shift of all since the last one; `bar` what can be done.
export function useMarks(idAt) {
  const [marked, mark] = useState(new Set());
  const last = useRef(0);
  const clear = () => mark(new Set());
  const turn = (ids, on) =>
    mark((before) => {
      const after = new Set(before);
      for (const id of ids) {
        if (on) after.add(id);
        else after.delete(id);
      }
      return after;
    });
  const pick = (event, index) => {
    const [from, to] = [event.shiftKey ? last.current : index, index].sort((a, b) => a - b);
    const ids = Array.from({ length: to - from + 1 }, (_, step) => idAt(from + step));
    turn(ids.filter(Boolean), event.target.checked);
    last.current = index;
  };
  const box = (id, index, label, more) =>
    html`<input type="checkbox" aria-label=${label} checked=${marked.has(id)} onClick=${(event) => pick(event, index)} ...${more} />`;
  const bar = (label, acts) =>
    marked.size > 0 &&
    html`<div class="bulk" role="toolbar" aria-label=${label}>
      <b>${number(marked.size)} selected</b>${acts}${button("Clear", clear)}</div>`;
  return { ids: [...marked], turn, clear, has: (id) => marked.has(id), box, bar };
}

// Lists of any length --------------------------------------------------------------------------------------------------

const SPARE = 8; // rows beyond both ends of what is in sight

// Only the rows in sight are in the page; `row(index)` returns one, all of one height in pixels.
export function Rows({ total, height, row, label }) {
  const box = useRef();
  const [[first, last], look] = useState([0, 30]);
  const measure = () => {
    const { scrollTop, clientHeight } = box.current;
    const from = Math.max(0, Math.floor(scrollTop / height) - SPARE);
    const to = Math.ceil((scrollTop + clientHeight) / height) + SPARE;
    look((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useLayoutEffect(() => {
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const shown = [];
  for (let index = first; index < Math.min(total, last); index++) {
    const style = { top: `${index * height}px`, height: `${height}px` };
    shown.push(
      html`<li key=${index} aria-setsize=${total} aria-posinset=${index + 1} style=${style}><${Safe}>${row(index)}<//></li>`,
    );
  }
  return html`<div class="rows" ref=${box} onScroll=${measure} tabindex="-1">
    <ul aria-label=${label} style=${{ height: `${total * height}px` }}>${shown}</ul></div>`;
}

const PAGE = 100;

// Pages of `list` as they come into sight; while one is asked for again, what was there is shown.
export function usePages(fields) {
  const key = JSON.stringify(fields);
  const kept = useRef({});
  const [shown, set] = useState({});
  if (kept.current.key !== key) kept.current = { key, rows: [], asked: new Set() };
  const load = (offset) => {
    const { rows, asked } = kept.current;
    const settle = (found) => kept.current.key === key && set({ key, ...found });
    if (asked.has(offset)) return;
    asked.add(offset);
    call("list", { ...fields, limit: PAGE, offset }).then(
      ({ memories, total }) => {
        memories.forEach((memory, index) => {
          rows[offset + index] = memory;
        });
        settle({ total });
      },
      (error) => settle({ ...shown, error }),
    );
  };
  const reload = () => {
    kept.current = { ...kept.current, asked: new Set() };
    load(0);
  };
  useOn("changed", reload);
  useEffect(() => load(0), [key]);
  const at = (index) => {
    const { rows, asked } = kept.current;
    const start = index - (index % PAGE);
    let hole = start;
    if (asked.has(start)) while (rows[hole] && hole < index) hole++; // of large memories fewer come than asked for
    if (!asked.has(start) || !rows[hole]) load(hole);
    return rows[index];
  };
  return { at, reload, total: shown.key === key ? shown.total : undefined, error: shown.error };
}
