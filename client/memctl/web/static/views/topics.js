// What memories are about: topics as a list, and as a map for those who look at it; their nodes and members.

import { report } from "../api.js";
import { createMap } from "../map.js";
import { Empty, Head, Loading, Problem, count, fixed, html, line, number, place, useAnswer, useCall, useEffect, useOn, useRef, useState } from "../ui.js";

const MOST = 10000; // nodes on the map; above that it says nothing

export default function Topics() {
  const [topic, choose] = useState(null), [node, look] = useState(null), [asked, ask] = useState("list"), map = useRef(null);
  const topics = useCall("graph_topics", { reach: "all" }), nodes = useCall("graph_nodes", { reach: "all", limit: 100, ...(topic ? { topic } : {}) });
  const shown = asked === "map";
  const drawn = useAnswer(() => report("map"), [], shown);
  const { value, error } = topics;
  const pick = (id) => { const next = topic === id ? null : id; choose(next); look(null); map.current?.focus(next); };
  const ranked = [...(value?.topics || [])];
  return html`<${Head} title="Topics"><div class="tools" role="group" aria-label="Show as"><button aria-pressed=${!shown} onClick=${() => ask("list")}>List</button><button aria-pressed=${shown} onClick=${() => ask("map")}>Map</button></div><//>
    ${error && html`<div class="scroll"><${Problem} error=${error} /></div>`}
    ${!value && !error && html`<${Loading} />`}
    ${value && !ranked.length && !nodes.value?.total && html`<${Empty}><p>There are no topics yet.</p><p>Memories get into the graph when they move to L2. To move them now: <code>memctl consolidate</code>.</p><//>`}
    ${value && (ranked.length > 0 || nodes.value?.total > 0) && html`<div class="split stack"><div class="list"><ul>${ranked.map((one) => html`<li key=${one.id}><button class=${`topic ${topic === one.id ? "on" : ""}`} aria-pressed=${topic === one.id} onClick=${() => pick(one.id)}>
        <${Swatch} map=${map.current} id=${one.id} /><span><b>${one.label}</b><span class="about"><span>${place(one.namespace)}</span><span>${count(one.nodes, "node")}</span></span></span><span class="right">${number(one.memories)}</span></button></li>`)}
        ${value.alone > 0 && html`<li class="topic dim"><span></span><span>in no topic</span><span class="right">${count(value.alone, "node")}</span></li>`}</ul></div>
      <div class="side">${shown ? (drawn.value ? (drawn.value.total > MOST ? html`<p class="dim">${number(drawn.value.total)} nodes are too many for a map; the list shows the topics.</p>` : html`<${Map} graph=${drawn.value} made=${(made) => { map.current = made; }} open=${look} />`) : drawn.error ? html`<${Problem} error=${drawn.error} />` : html`<${Loading} />`) : ""}
        ${node ? html`<${Node} id=${node} close=${() => look(null)} />` : !shown && html`<${Nodes} answer=${nodes} open=${look} />`}</div></div>`}`;
}

const Swatch = ({ map, id }) => html`<span class="swatch" aria-hidden="true" style=${map ? { background: map.colour(map.topicOf.get(id)) } : {}}></span>`;

function Nodes({ answer, open }) {
  if (answer.error) return html`<${Problem} error=${answer.error} />`;
  if (!answer.value) return html`<${Loading} />`;
  return html`<h3>${count(answer.value.total, "node")}</h3><ul>${answer.value.nodes.map((one) => html`<li key=${one.id}><button class="topic" onClick=${() => open(one.id)}><span></span><span>${one.label}<span class="about"><span>${place(one.namespace)}</span>${one.kind === "concept" && html`<span>concept</span>`}</span></span><span class="right">${number(one.size)}</span></button></li>`)}</ul>
    ${answer.value.total > answer.value.nodes.length && html`<p class="dim">and ${number(answer.value.total - answer.value.nodes.length)} smaller ones</p>`}`;
}

function Node({ id, close }) {
  const { value, error } = useCall("graph_node", { node: id, reach: "all" });
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<${Loading} />`;
  return html`<section><p class="acts"><button onClick=${close}>Back</button></p><h2>${value.node.label}</h2><p class="about"><span>node ${value.node.id}</span><span>${place(value.node.namespace)}</span>${value.topic && html`<span>topic: ${value.topic}</span>`}<span>named by ${value.node.named_by}</span></p>
    <section><h3>${count(value.members.length, "memory", "memories")}</h3><ul>${value.members.map((one) => html`<li class="hit" key=${one.id}><span class="score">${fixed(one.similarity, 2)}</span><a href=${`#/m/${one.id}`}>${line(one.preview)}</a></li>`)}</ul></section>
    ${value.neighbours.length > 0 && html`<section><h3>Beside it</h3><ul>${value.neighbours.slice(0, 30).map((one) => html`<li key=${`${one.node}${one.relation}`}><span class="dim">${one.relation.replaceAll("_", " ")} ${fixed(one.weight, 2)}</span> ${one.label}</li>`)}</ul></section>`}</section>`;
}

function Map({ graph, made, open }) {
  const canvas = useRef(null), [tip, point] = useState(null), drawn = useRef(null);
  useEffect(() => {
    const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
    const one = createMap(canvas.current, graph, { dark, choose: (index) => { one.choose(index); open(index === null ? null : one.nodes[index].id); }, over: (node, x, y) => point(node && { node, x, y }) });
    drawn.current = one;
    made(one);
    const again = () => one.redraw();
    addEventListener("theme", again);
    return () => { removeEventListener("theme", again); one.close(); made(null); };
  }, [graph]);
  useOn("changed", () => drawn.current?.redraw());
  return html`<div class="map"><canvas ref=${canvas} role="img" aria-label=${`Map of ${graph.nodes.length} nodes; the list of topics says the same`}></canvas>
    ${tip && html`<div class="tip" style=${{ left: `${tip.x + 14}px`, top: `${tip.y + 14}px` }}>${tip.node.label} (${number(tip.node.size)})</div>`}
    <div class="tools"><button aria-label="Zoom in" onClick=${() => drawn.current.zoom(1.4)}>+</button><button aria-label="Zoom out" onClick=${() => drawn.current.zoom(1 / 1.4)}>−</button><button onClick=${() => drawn.current.fitAll()}>Show all</button></div></div>`;
}
