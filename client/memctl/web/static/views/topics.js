// What memories are about: topics as a list, and as a map for those who look at it; their nodes and members.

import { report } from "../api.js";
import { createMap } from "../map.js";
import { about, count, dim, Empty, fixed, Head, html, line, list, number, part, place, show, useAnswer, useCall, useEffect, useRef, useState } from "../ui.js";

const MOST = 10000; // nodes on the map; above that it says nothing

export default function Topics() {
  const [topic, choose] = useState(null), [node, look] = useState(null), [shown, draw] = useState(false), [map, setMap] = useState(null);
  const topics = useCall("graph_topics", { reach: "all" }), nodes = useCall("graph_nodes", { reach: "all", limit: 100, ...(topic ? { topic } : {}) });
  const drawn = useAnswer(() => report("map"), [], shown);
  const pick = (id) => { const next = topic === id ? null : id; choose(next); look(null); map?.focus(next); };
  const entry = (one, many, open, on) => html`<button class=${`topic ${on ? "on" : ""}`} aria-pressed=${on} onClick=${open}><span class="swatch" aria-hidden="true" style=${{ background: map && on !== undefined ? map.colour(map.topicOf.get(one.id)) : "none" }}></span>
    <span><b>${one.label}</b>${about(place(one.namespace), one.nodes && count(one.nodes, "node"), one.kind === "concept" && "concept")}</span><span class="right">${number(many)}</span></button>`;
  return html`<${Head} title="Topics"><div class="tools" role="group" aria-label="Show as"><button aria-pressed=${!shown} onClick=${() => draw(false)}>List</button><button aria-pressed=${shown} onClick=${() => draw(true)}>Map</button></div><//>
    ${show(topics, (found) => (!found.topics.length && !nodes.value?.total ? html`<${Empty}><p>There are no topics yet.</p><p>Memories get into the graph when they move to L2. To move them now: <code>memctl consolidate</code>.</p><//>`
      : html`<div class="split stack"><div class="list">${list(found.topics, (one) => entry(one, one.memories, () => pick(one.id), topic === one.id))}${found.alone > 0 && html`<p class="topic dim"><span></span>${count(found.alone, "node")} in no topic</p>`}</div>
        <div class="side">${shown && show(drawn, (graph) => (graph.total > MOST ? dim(`${number(graph.total)} nodes are too many for a map; the list shows the topics.`) : html`<${Map} graph=${graph} made=${setMap} open=${look} />`))}
          ${node ? html`<${Node} id=${node} close=${() => look(null)} />` : !shown && show(nodes, (page) => part(count(page.total, "node"), [list(page.nodes, (one) => entry(one, one.size, () => look(one.id))), page.total > page.nodes.length && dim(`and ${number(page.total - page.nodes.length)} smaller ones`)]))}</div></div>`))}`;
}

function Node({ id, close }) {
  return show(useCall("graph_node", { node: id, reach: "all" }), ({ node, topic, members, neighbours }) => html`<p class="acts"><button onClick=${close}>Back</button></p><h2>${node.label}</h2>${about(`node ${node.id}`, place(node.namespace), topic && `topic: ${topic}`, `named by ${node.named_by}`)}
    ${part(count(members.length, "memory", "memories"), list(members, (one) => html`<p class="hit"><span class="score">${fixed(one.similarity, 2)}</span><a href=${`#/m/${one.id}`}>${line(one.preview)}</a></p>`))}
    ${neighbours.length > 0 && part("Beside it", list(neighbours.slice(0, 30), (one) => about(one.relation.replaceAll("_", " "), fixed(one.weight, 2), one.label)))}`);
}

function Map({ graph, made, open }) {
  const canvas = useRef(null), [tip, point] = useState(null), drawn = useRef(null);
  useEffect(() => {
    const one = createMap(canvas.current, graph, {
      dark: () => getComputedStyle(document.documentElement).colorScheme === "dark",
      choose: (index) => { one.choose(index); open(index === null ? null : one.nodes[index].id); },
      over: (node, x, y) => point(node && { node, x, y }),
    });
    drawn.current = one;
    made(one);
    addEventListener("theme", one.redraw);
    return () => { removeEventListener("theme", one.redraw); one.close(); made(null); };
  }, [graph]);
  return html`<div class="map"><canvas ref=${canvas} role="img" aria-label=${`Map of ${graph.nodes.length} nodes; the list of topics says the same`}></canvas>
    ${tip && html`<div class="tip" style=${{ left: `${tip.x + 14}px`, top: `${tip.y + 14}px` }}>${tip.node.label} (${number(tip.node.size)})</div>`}
    <div class="tools"><button aria-label="Zoom in" onClick=${() => drawn.current.zoom(1.4)}>+</button><button aria-label="Zoom out" onClick=${() => drawn.current.zoom(1 / 1.4)}>−</button><button onClick=${() => drawn.current.fitAll()}>Show all</button></div></div>`;
}
