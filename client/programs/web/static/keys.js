// Keys. A view says what a key does there; one place listens. While a view loads, what is typed waits for it in its
// order: then it is text where a field has the focus, else a key of the view. Escape leaves a field first.

import { useEffect, useRef } from "./vendor/htm-preact.js";

const STEPS = "j k x Enter".split(" "); // wait for the rows of a view, too
const TURN_MS = 15;
const TURNS = 400; // of waiting for rows
const layers = []; // of keys: of the page, of a view, of a part of it; the innermost is asked first
const SAVE = "Control+Enter"; // what sends a text of several lines
const waiting = []; // keys that came too early
let held = false;
let running = false;

const isField = (element) => element.matches("textarea, select, input:not([type=checkbox])");
const rests = () => new Promise((done) => setTimeout(done, TURN_MS));
const loads = () => document.querySelector("main .loading");

// From here until `release` a view is on its way; `found` is called when it is there, before what was typed.
export function hold() {
  held = true;
}
export function release(found) {
  if (held) found?.();
  held = false;
}

// Keys of a view: `useKeys({ e: edit })`; one that has nothing to do returns false. The page has depth 0, a view 1.
export function useKeys(keys, depth = 1) {
  const layer = useRef({ depth });
  layer.current.keys = keys;
  useEffect(() => {
    layers.push(layer.current);
    layers.sort((a, b) => b.depth - a.depth);
    return () => {
      layers.splice(layers.indexOf(layer.current), 1);
    };
  }, []);
}

function act(key, event) {
  const own = layers.filter(({ keys }) => keys[key]);
  if (own.length) event?.preventDefault();
  return own.some(({ keys }) => keys[key](event) !== false);
}

// What a key that waited would have done; texts are put into a field at once.
function perform() {
  const at = document.activeElement;
  const key = waiting.shift();
  if (!isField(at) || key === "Escape") return leave(at) || act(key) || (key === "Enter" && at.click());
  if (key === "Enter" || key === SAVE) {
    const more = { bubbles: true, cancelable: true, ctrlKey: key === SAVE };
    return at.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ...more }));
  }
  if (at.matches("select")) return undefined;
  const from = at.selectionStart;
  const to = at.selectionEnd;
  const isBack = key === "Backspace";
  const texts = [key];
  while (!isBack && waiting[0]?.length === 1) texts.push(waiting.shift());
  at.setRangeText(isBack ? "" : texts.join(""), isBack && from === to ? Math.max(0, from - 1) : from, to, "end");
  return at.dispatchEvent(new Event("input", { bubbles: true }));
}

async function catchUp() {
  running = true;
  while (waiting.length) {
    while (held) await rests();
    const steps = STEPS.includes(waiting[0]) && !isField(document.activeElement);
    for (let turns = TURNS; turns > 0 && steps && loads(); turns--) await rests();
    perform();
    await rests(); // for what it changed
  }
  running = false;
}

function leave(field) {
  if (isField(field)) field.blur();
  return isField(field);
}

const isOurs = (event) => event.isTrusted && !event.isComposing && !event.ctrlKey && !event.metaKey && !event.altKey;
const dialog = () => document.querySelector("dialog[open]");

// First, before a field or a row hears of the key: it waits where others wait.
addEventListener(
  "keydown",
  (event) => {
    const { target } = event;
    const early = held || waiting.length || running;
    const saves = early && event.isTrusted && event.key === "Enter" && (event.ctrlKey || event.metaKey);
    const key = saves ? SAVE : event.key;
    if (!(saves || isOurs(event)) || dialog()) return;
    if (!early && !(STEPS.slice(0, 3).includes(key) && !isField(target) && loads())) return;
    event.stopImmediatePropagation();
    if (key.length > 1 && !["Enter", SAVE, "Backspace", "Escape"].includes(key)) return;
    event.preventDefault();
    waiting.push(key);
    if (!running) catchUp();
  },
  true,
);
addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (!isOurs(event) || event.defaultPrevented) return;
  if (dialog()) {
    if (key === "?") act(key, event); // Escape closes it by itself
  } else if (!isField(target)) {
    act(key, event);
  } else if (key === "Escape") {
    event.preventDefault();
    leave(target);
  }
});
