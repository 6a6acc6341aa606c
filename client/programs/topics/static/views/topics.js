// What memories are about, in all tiers: topics as a list, and as a map with their names; their nodes and members.

import { report } from "../api.js";
import { createMap } from "../map.js";
import { about, badge, button, count, dim, draw, empty, head, html, line, link, list, memories, number, part, place, show, useAnswer, useCall, useEffect, useKeys, useReport, useReturn, useRef, useState } from "../ui.js";

const NONE = html`<p>There are no memories yet.</p><p>What is remembered is sorted into topics here: <code>memctl add "We deploy on Tuesdays"</code>, or <code>memctl hooks install claude-code</code>.</p>`;
const NAMED = 24; // topics on the map: each has its name there

export default function Topics() {
  const [topic, choose] = useState(null), [node, look] = useState(null), [drawn, draw] = useState(false), [map, setMap] = useState(null);
  const topics = useReport("topics", {}), found = topics.value, all = [...(found?.topics || []), ...(found?.groups || [])], chosen = all.find((one) => one.id === topic);
  const isMapped = drawn && found?.topics.length > 0, graph = useAnswer(() => report("map").then(nameable), [isMapped], [], isMapped);
  const pick = (id) => { const next = topic === id ? null : id; choose(next); look(null); map?.focus(next); };
  useKeys({ Escape: () => { if (node) look(null); else if (topic !== null) pick(topic); else return false; } });
  useReturn(isMapped ? null : topic);
  const entry = (one) => html`<button class=${`topic ${topic === one.id ? "on" : ""}`} aria-pressed=${topic === one.id} onClick=${() => pick(one.id)} data-row=${one.id}>
    ${map && html`<span class="swatch" aria-hidden="true" style=${{ background: map.colour(map.topicOf.get(one.id)) }}></span>`}<span><b>${line(one.label)}</b>
    ${one.examples?.map((text) => html`<span class="one example">${text}</span>`)}${about(one.namespace !== undefined && place(one.namespace), memories((one.memories || 0) + one.recent.length), one.memories > 0 && one.recent.length > 0 && `${number(one.recent.length)} recent`)}</span></button>`;
  return html`${head("Topics", found?.topics.length > 0 && html`<div class="tools" role="group" aria-label="Show as">${button("List", () => draw(false), { "aria-pressed": !drawn })}${button("Map", () => draw(true), { "aria-pressed": drawn })}</div>`)}
    ${show(topics, () => (!all.length ? empty(NONE)
      : html`<div class=${`split stack ${topic !== null && !isMapped ? "read" : ""}`}><div class="list">${list(all, entry)}${found.alone > 0 && html`<p class="topic dim">${count(found.alone, "node")} in no topic</p>`}</div>
        <div class="side">${isMapped && show(graph, (made) => html`<${Map} graph=${made} made=${setMap} open=${look} />`)}${node ? html`<${Node} id=${node} close=${() => look(null)} />` : chosen ? html`<p class="acts">${button("Close (Esc)", () => pick(topic))}</p><${Inside} topic=${chosen} look=${look} />` : !isMapped && dim("Choose a topic to see what is in it.")}</div></div>`))}`;
}

// The largest topics of a graph, as many as have room for their names, with what is in them.
function nameable(graph) {
  const kept = graph.topics.slice(0, innerWidth < 700 ? NAMED / 2 : NAMED), known = new Set(kept.map(({ id }) => id)), places = {};
  const nodes = graph.nodes.filter((one, index) => known.has(one.topic) && (places[index] = Object.keys(places).length) >= 0);
  return { ...graph, topics: kept, nodes, edges: graph.edges.flatMap(([a, b, ...rest]) => (a in places && b in places ? [[places[a], places[b], ...rest]] : [])) };
}

// What is in a topic: its nodes, largest first, and what is not in L2 yet.
function Inside({ topic, look }) {
  const nodes = useCall("graph_nodes", { reach: "all", limit: 100, topic: topic.nodes ? topic.id : 0 }, { wanted: Boolean(topic.nodes) });
  const entry = (one) => html`<button class="topic" onClick=${() => look(one.id)} data-row="true"><span><b>${one.label}</b>${about(one.kind === "concept" ? `concept over ${count(one.size, "node")}` : memories(one.size))}</span></button>`;
  return html`<h2>${line(topic.label)}</h2>${topic.recent.length > 0 && part("Recent", topic.recent.map((one) => html`<p class="hit said">${link(one.id, one.text, { "data-row": one.id })}${about(badge(one.tier), place(one.namespace))}</p>`))}
    ${topic.nodes > 0 && show(nodes, (page) => part(count(page.total, "node"), [list(page.nodes, entry), page.total > page.nodes.length && dim(`and ${number(page.total - page.nodes.length)} smaller ones`)]))}`;
}

const Node = ({ id, close }) => html`<p class="acts">${button("Back", close)}</p>${show(useReport("node", { id }), draw)}`;

function Map({ graph, made, open }) {
  const canvas = useRef(), drawn = useRef(), [tip, point] = useState(null);
  useEffect(() => {
    const map = drawn.current = createMap(canvas.current, graph, {
      dark: () => getComputedStyle(document.documentElement).colorScheme === "dark",
      choose: (index) => { map.choose(index); open(index === null ? null : map.nodes[index].id); },
      over: (node, x, y) => point(node && { node, left: `${x + 14}px`, top: `${y + 14}px` }),
    });
    made(map);
    addEventListener("theme", map.redraw);
    return () => { removeEventListener("theme", map.redraw); map.close(); made(null); };
  }, [graph]);
  return html`<div class="map"><canvas ref=${canvas} role="img" aria-label=${`Map of ${graph.nodes.length} nodes; the list of topics says the same`}></canvas>
    ${tip && html`<div class="tip" style=${{ left: tip.left, top: tip.top }}>${tip.node.label} (${number(tip.node.size)})</div>`}
    <div class="tools">${button("+", () => drawn.current.zoom(1.4), { "aria-label": "Zoom in" })}${button("−", () => drawn.current.zoom(1 / 1.4), { "aria-label": "Zoom out" })}${button("Show all", () => drawn.current.fitAll())}</div></div>`;
}
