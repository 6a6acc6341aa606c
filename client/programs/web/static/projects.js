// The projects: namespaces in which something is kept, those of the latest work first; the person is one, at the end.

import { call } from "./api.js";
import { go, useAnswer } from "./hooks.js";
import { choice, html } from "./parts.js";
import { place } from "./text.js";

const LATEST = 200; // operations and turns that say where work was lately
const MOST = 1000; // namespaces that are listed
const SHOWN = 8;
export const PERSON = "";

export const addressOf = (namespace) => `/project?${new URLSearchParams({ ns: namespace })}`;

async function readProjects() {
  const [{ namespaces }, { operations }, { turns }] = await Promise.all([
    call("namespaces", { limit: MOST, reach: "all" }),
    call("operations", { limit: LATEST, reach: "all" }),
    call("turns", { limit: LATEST, reach: "all" }),
  ]);
  const latest = new Map(namespaces.map(({ name }) => [name, 0]));
  for (const { namespace, created_at: at } of turns) latest.set(namespace, Math.max(at, latest.get(namespace) || 0));
  for (const { namespace, at } of operations) {
    if (latest.has(namespace)) latest.set(namespace, Math.max(at, latest.get(namespace)));
  }
  latest.delete(PERSON);
  const names = [...latest.keys()].sort((a, b) => latest.get(b) - latest.get(a) || a.localeCompare(b));
  return [...names, PERSON];
}

export const useProjects = () => useAnswer(readProjects, [], { kinds: ["created", "observed"] });

export function Projects({ names, chosen }) {
  const first = names.slice(0, SHOWN);
  const shown = [...new Set([...first, chosen, PERSON])];
  const rest = names.filter((name) => !shown.includes(name));
  const entry = (name) =>
    html`<a href=${`#${addressOf(name)}`} aria-current=${name === chosen ? "true" : undefined}>${name || "/ (you)"}</a>`;
  const more = choice(
    "Others",
    "",
    (name) => go(addressOf(name)),
    rest.map((name) => [name, place(name)]),
    "–",
  );
  return html`<nav class="projects" aria-label="Projects">${shown.map(entry)}${rest.length > 0 && more}</nav>`;
}
