// What memories are about: topics as a list, and as a map for those who look at it; their nodes and members.

import { report } from "../api.js";
import { createMap } from "../map.js";
import { about, button, count, dim, draw, empty, head, html, list, memories, number, part, place, show, useAnswer, useCall, useEffect, useReport, useRef, useState } from "../ui.js";

const MOST = 10000; // nodes on the map; above that it says nothing
const NONE = html`<p>There are no topics yet.</p><p>Memories get into the graph when they move to L2. To move them now: <code>memctl consolidate</code>.</p>`;

export default function Topics() {
  const [topic, choose] = useState(null), [node, look] = useState(null), [drawn, draw] = useState(false), [map, setMap] = useState(null);
  const topics = useCall("graph_topics", { reach: "all" }), nodes = useCall("graph_nodes", { reach: "all", limit: 100, ...(topic && { topic }) }), graph = useAnswer(() => report("map"), [drawn], [], drawn);
  const pick = (id) => { const next = topic === id ? null : id; choose(next); look(null); map?.focus(next); };
  const entry = (one, open, on) => html`<button class=${`topic ${on ? "on" : ""}`} aria-pressed=${on} onClick=${open} data-row="true">${map && html`<span class="swatch" aria-hidden="true" style=${{ background: map.colour(map.topicOf.get(one.kind ? one.topic : one.id)) }}></span>`}
    <span><b>${one.label}</b>${about(place(one.namespace), one.kind === "concept" ? `concept over ${count(one.size, "node")}` : memories(one.size ?? one.memories), one.nodes && count(one.nodes, "node"))}</span></button>`;
  const side = () => (node ? html`<${Node} id=${node} close=${() => look(null)} />` : !drawn && show(nodes, (page) => part(count(page.total, "node"), [list(page.nodes, (one) => entry(one, () => look(one.id))), page.total > page.nodes.length && dim(`and ${number(page.total - page.nodes.length)} smaller ones`)])));
  return html`${head("Topics", html`<div class="tools" role="group" aria-label="Show as">${button("List", () => draw(false), { "aria-pressed": !drawn })}${button("Map", () => draw(true), { "aria-pressed": drawn })}</div>`)}
    ${show(topics, (found) => (!found.topics.length && !nodes.value?.total ? empty(NONE)
      : html`<div class="split stack"><div class="list">${list(found.topics, (one) => entry(one, () => pick(one.id), topic === one.id))}${found.alone > 0 && html`<p class="topic dim">${count(found.alone, "node")} in no topic</p>`}</div>
        <div class="side">${drawn && show(graph, (made) => (made.total > MOST ? dim(`${number(made.total)} nodes are too many for a map; the list shows the topics.`) : html`<${Map} graph=${made} made=${setMap} open=${look} />`))}${side()}</div></div>`))}`;
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
