// The projects: namespaces in which something is kept, those of the latest work first; the person is one, at the end.
// In a tab that is signed in they are asked for while the other modules still load.

import { callAll, state } from "./api.js";

const LATEST = 200; // operations and turns that say where work was lately
const MOST = 1000; // namespaces that are listed
export const PERSON = "";

async function askProjects() {
  const [{ namespaces }, { operations }, { turns }] = await callAll([
    ["namespaces", { limit: MOST, reach: "all" }],
    ["operations", { limit: LATEST, reach: "all" }],
    ["turns", { limit: LATEST, reach: "all" }],
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

let first = state.token ? askProjects().catch(() => null) : null;

export async function readProjects() {
  const names = await first;
  first = null;
  return names || askProjects();
}
