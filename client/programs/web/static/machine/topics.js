// What memories are about: topics that have a name, as a list; their nodes, and the memories in them.

import { show, useCall, useKeys, useReturn, useState } from "../hooks.js";
import { about, button, dim, empty, head, html, list, row, section } from "../parts.js";
import { count, fixed, line, memories, number, place, words } from "../text.js";

const NEIGHBOURS = 30; // shown
const NONE = html`<p>No topic has a name yet.</p>
  <p>Topics are found each night among memories of L2, and by <code>memctl graph rebuild</code>.</p>`;

export default function Topics({ menu }) {
  const [topic, choose] = useState(null);
  const [node, look] = useState(null);
  const answer = useCall("graph_topics", { reach: "all" });
  const pick = (id) => {
    choose(topic === id ? null : id);
    look(null);
  };
  const leave = () => {
    if (node) return look(null);
    return topic === null ? false : pick(topic);
  };
  useKeys({ Escape: leave });
  useReturn(topic);
  return html`${head("Health")}<div class="bar-form">${menu}</div>${show(answer, ({ topics, alone }) => {
    const named = topics.filter((one) => one.label);
    const chosen = named.find((one) => one.id === topic);
    const others = topics.length - named.length + alone;
    return named.length === 0
      ? empty(NONE)
      : html`<div class=${`split stack ${chosen ? "read" : ""}`}>
      <div class="list">${list(named, (one) => showTopic(one, topic, pick))}
        ${others > 0 && html`<p class="topic dim">${count(others, "group")} without a name</p>`}</div>
      <div class="side">${
        node
          ? html`<${Node} id=${node} close=${() => look(null)} />`
          : chosen
            ? html`<${Nodes} key=${chosen.id} topic=${chosen} close=${() => pick(topic)} look=${look} />`
            : dim("Choose a topic to see what is in it.")
      }</div></div>`;
  })}`;
}

function showTopic(one, chosen, pick) {
  const isOn = one.id === chosen;
  return html`<button class=${`topic ${isOn ? "on" : ""}`} aria-pressed=${isOn} onClick=${() => pick(one.id)} data-row=${one.id}>
    <span><b>${line(one.label)}</b><span class="one example">${line(one.about)}</span>
      ${about(place(one.namespace), memories(one.memories))}</span></button>`;
}

// The nodes of a topic, the largest first.
function Nodes({ topic, close, look }) {
  const answer = useCall("graph_nodes", { reach: "all", limit: 100, topic: topic.id });
  const size = (one) => (one.kind === "concept" ? `concept over ${count(one.size, "node")}` : memories(one.size));
  const entry = (one) =>
    html`<button class="topic" onClick=${() => look(one.id)} data-row="true">
      <span><b>${line(one.label || one.about)}</b>${about(size(one))}</span></button>`;
  return html`<p class="acts">${button("Close (Esc)", close)}</p><h2>${line(topic.label)}</h2>
    ${show(answer, ({ nodes, total }) =>
      section(
        count(total, "node"),
        list(nodes, entry),
        total > nodes.length && dim(`and ${number(total - nodes.length)} smaller ones`),
      ),
    )}`;
}

// The memories in a node, and what is beside it.
function Node({ id, close }) {
  const answer = useCall("graph_nodes", { node: id, reach: "all" });
  const member = (one) =>
    html`<p class="hit"><span class="score">${one.similarity === null ? "" : fixed(one.similarity, 2)}</span>${row(one.id, one.preview)}</p>`;
  const neighbour = (one) => about(words(one.relation), fixed(one.weight, 2), one.label || line(one.about));
  return html`<p class="acts">${button("Back", close)}</p>
    ${show(
      answer,
      ({ nodes: [node], members, neighbours }) => html`<h2>${line(node.label || node.about)}</h2>
      ${about(`node ${node.id}`, place(node.namespace), node.label && `named by ${node.named_by}`)}
      ${section(memories(members.length), list(members, member))}
      ${neighbours.length > 0 && section("Beside it", list(neighbours.slice(0, NEIGHBOURS), neighbour))}`,
    )}`;
}
