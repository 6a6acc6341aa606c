// What memories are about, in all tiers: topics as a list, their nodes and members.

import { about, badge, button, count, dim, draw, empty, head, html, line, link, list, memories, number, part, place, show, useCall, useKeys, useReport, useReturn, useState } from "../ui.js";

const NONE = html`<p>There are no memories yet.</p><p>What is remembered is sorted into topics here: <code>memctl add "We deploy on Tuesdays"</code>, or <code>memctl hooks install claude-code</code>.</p>`;

export default function Topics() {
  const [topic, choose] = useState(null), [node, look] = useState(null);
  const topics = useReport("topics", {}), found = topics.value, all = [...(found?.topics || []), ...(found?.groups || [])], chosen = all.find((one) => one.id === topic);
  const pick = (id) => { choose(topic === id ? null : id); look(null); };
  useKeys({ Escape: () => { if (node) look(null); else if (topic !== null) pick(topic); else return false; } });
  useReturn(topic);
  const entry = (one) => html`<button class=${`topic ${topic === one.id ? "on" : ""}`} aria-pressed=${topic === one.id} onClick=${() => pick(one.id)} data-row=${one.id}>
    <span><b>${line(one.label)}</b>${one.examples?.map((text) => html`<span class="one example">${text}</span>`)}
    ${about(one.namespace !== undefined && place(one.namespace), memories((one.memories || 0) + one.recent.length), one.memories > 0 && one.recent.length > 0 && `${number(one.recent.length)} recent`)}</span></button>`;
  return html`${head("Topics")}
    ${show(topics, () => (!all.length ? empty(NONE)
      : html`<div class=${`split stack ${topic !== null ? "read" : ""}`}><div class="list">${list(all, entry)}${found.alone > 0 && html`<p class="topic dim">${count(found.alone, "node")} in no topic</p>`}</div>
        <div class="side">${node ? html`<${Node} id=${node} close=${() => look(null)} />` : chosen ? html`<p class="acts">${button("Close (Esc)", () => pick(topic))}</p><${Inside} topic=${chosen} look=${look} />` : dim("Choose a topic to see what is in it.")}</div></div>`))}`;
}

// What is in a topic: its nodes, largest first, and what is not in L2 yet.
function Inside({ topic, look }) {
  const nodes = useCall("graph_nodes", { reach: "all", limit: 100, topic: topic.nodes ? topic.id : null }, { wanted: Boolean(topic.nodes) });
  const entry = (one) => html`<button class="topic" onClick=${() => look(one.id)} data-row="true"><span><b>${line(one.label || one.about)}</b>${about(one.kind === "concept" ? `concept over ${count(one.size, "node")}` : memories(one.size))}</span></button>`;
  return html`<h2>${line(topic.label)}</h2>${topic.recent.length > 0 && part("Recent", topic.recent.map((one) => html`<p class="hit said">${link(one.id, one.text, { "data-row": one.id })}${about(badge(one.tier), place(one.namespace))}</p>`))}
    ${topic.nodes > 0 && show(nodes, (page) => part(count(page.total, "node"), [list(page.nodes, entry), page.total > page.nodes.length && dim(`and ${number(page.total - page.nodes.length)} smaller ones`)]))}`;
}

const Node = ({ id, close }) => html`<p class="acts">${button("Back", close)}</p>${show(useReport("node", { id }), draw)}`;
