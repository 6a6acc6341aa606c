// A project: what holds now, what seems to be changed, its last sessions, what agents were given today.

import { run, say } from "../api.js";
import { Given } from "../given.js";
import { show, useCalls, useState } from "../hooks.js";
import { PERSON } from "../latest.js";
import { Changed, Contradiction } from "../later.js";
import { button, choice, dim, field, head, html, PRIMARY } from "../parts.js";
import { Projects, useProjects } from "../projects.js";
import { Saved } from "../saved.js";
import { Sessions } from "../sessions.js";
import { number, place, startOfDay } from "../text.js";

const TYPES = ["rule", "decision", "preference", "lesson", "fact"];
const KINDS = ["observed", "created", "updated", "deleted"];
const MOST = 50; // pairs that are open

export default function Project({ where: { query } }) {
  const { value: names, error } = useProjects();
  const namespace = query.get("ns") ?? names?.[0];
  if (namespace === undefined) return show({ error }, () => null);
  const title = namespace === PERSON ? "Project / (you, in every project)" : `Project ${place(namespace)}`;
  const lately = `#/activity?${new URLSearchParams({ ns: namespace || "/", when: "last week" })}`;
  return html`${head(title, html`<a href=${lately}>What changed last week</a>`)}<${Projects} names=${names || [namespace]} chosen=${namespace} />
    <div class="scroll" key=${namespace}><${Adding} namespace=${namespace} /><${Open} namespace=${namespace} />
      <div class="columns"><${Saved} namespace=${namespace} />
        <div><${Sessions} namespace=${namespace} /><${Told} namespace=${namespace} /></div></div></div>`;
}

// What a person lays down.
function Adding({ namespace }) {
  const [type, choose] = useState(TYPES[0]);
  const [text, write] = useState("");
  const add = async () => {
    const content = text.trim();
    if (!content) return;
    const added = await run(`Saved the ${type}`, "add", { namespace, memory: { content, type, origin: "person" } });
    if (!added) return;
    write("");
    if (added.nearest_text) say(`A similar memory was saved before: ${added.nearest_text}`);
  };
  const label = `Add a rule, decision … for ${place(namespace)}`;
  return html`<div class="form">${choice("As", type, choose, TYPES)}
    ${field(label, text, write, add, { class: "long" })}${button("Add", add, PRIMARY)}</div>`;
}

// What seems to be changed or disagrees, and is not settled.
function Open({ namespace }) {
  const within = { namespace, reach: "exact", limit: MOST };
  const answer = useCalls(
    [
      ["list_changes", within],
      ["links", within],
    ],
    { kinds: KINDS },
  );
  const [changes, pairs] = answer.value || [{ memories: [], total: 0 }, { links: [] }];
  const seen = new Set(changes.memories.flatMap((memory) => [memory.id, memory.later.id]));
  const links = pairs.links.filter(({ newer, older }) => !seen.has(newer.id) || !seen.has(older.id));
  const total = changes.total + links.length;
  if (!total) return null;
  return html`<section class="panel" aria-label="To settle"><h2>To settle: changes and contradictions (${number(total)})</h2>
    ${changes.memories.map((memory) => html`<${Changed} key=${memory.id} memory=${memory} />`)}
    ${links.map((pair) => html`<${Contradiction} key=${`${pair.newer.id} ${pair.older.id}`} pair=${pair} />`)}</section>`;
}

function Told({ namespace }) {
  const [isAll, showAll] = useState(false);
  const since = isAll ? undefined : startOfDay(Date.now()) / 1000;
  const none = dim(isAll ? "Agents were given nothing here yet." : "Agents were given nothing here today.");
  return html`<section aria-label="What agents were given"><h2>What agents were given ${isAll ? "lately" : "today"}</h2>
    <${Given} namespace=${namespace} since=${since} none=${none} />
    ${!isAll && html`<p>${button("Show earlier days", () => showAll(true))}</p>`}</section>`;
}
