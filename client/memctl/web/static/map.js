// The map of nodes on a canvas. `graph export --format html` has the same text in its page.
// One path per topic is filled at once; edges are left out while the map moves.

export function createMap(canvas, graph, { choose = () => {}, over = () => {}, dark = () => false } = {}) {
  const pen = canvas.getContext("2d");
  const nodes = graph.nodes.map((node, index) => ({ ...node, index }));
  const topics = graph.topics.map((topic) => ({ ...topic, nodes: 0, memories: 0 }));
  const topicOf = new Map(topics.map((topic) => [topic.id, topic]));
  for (const node of nodes) {
    node.text = `${node.label}\n${node.members.join("\n")}`.toLocaleLowerCase();
    const topic = topicOf.get(node.topic);
    if (topic && node.kind === "cluster") { topic.nodes += 1; topic.memories += node.size; }
  }
  topics.sort((a, b) => b.memories - a.memories || a.id - b.id);
  topics.forEach((topic, rank) => { topic.rank = rank; });

  // Hues a golden angle apart, in three lightnesses, so that neighbours in the legend differ.
  function colour(topic, alpha = 1) {
    if (!topic) return `hsl(215 8% 55% / ${alpha})`;
    const light = (dark() ? [66, 56, 76] : [44, 54, 34])[Math.floor(topic.rank / 8) % 3];
    return `hsl(${((210 + topic.rank * 137.508) % 360).toFixed(0)} 62% ${light}% / ${alpha})`;
  }
  const view = { x: 0, y: 0, scale: 1 };
  let width = 0, height = 0, matches = null, focus = null, chosen = null, hovered = null, waiting = false, moving = 0;
  let paths = new Map(), level = null;
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const screen = (x, y) => [(x - view.x) * view.scale + width / 2, (y - view.y) * view.scale + height / 2];
  const world = (x, y) => [(x - width / 2) / view.scale + view.x, (y - height / 2) / view.scale + view.y];
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

  function shape(path, node, r) {
    if (node.kind === "concept") { path.moveTo(node.x, node.y - r); path.lineTo(node.x + r, node.y); path.lineTo(node.x, node.y + r); path.lineTo(node.x - r, node.y); path.closePath(); }
    else { path.moveTo(node.x + r, node.y); path.arc(node.x, node.y, r, 0, 7); }
  }
  // The paths of all nodes by topic, again where nodes would be too small to see.
  function build() {
    const now = Math.min(0, Math.floor(Math.log2(view.scale * 4)));
    if (now === level) return;
    level = now;
    paths = new Map();
    const least = 1.2 / (2 ** now / 4);
    for (const node of nodes) {
      if (!paths.has(node.topic)) paths.set(node.topic, new Path2D());
      shape(paths.get(node.topic), node, now < 0 ? Math.max(node.r, least / 2) : node.r);
    }
  }
  const lines = new Map();
  for (const [a, b, kind] of graph.edges) {
    if (!lines.has(kind)) lines.set(kind, new Path2D());
    lines.get(kind).moveTo(nodes[a].x, nodes[a].y);
    lines.get(kind).lineTo(nodes[b].x, nodes[b].y);
  }

  function draw() {
    const ratio = devicePixelRatio || 1, ink = style("--ink"), scale = ratio * view.scale;
    const place = () => pen.setTransform(scale, 0, 0, scale, ratio * (width / 2 - view.x * view.scale), ratio * (height / 2 - view.y * view.scale));
    build();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    place();
    for (const topic of topics) {
      pen.beginPath(); pen.arc(topic.x, topic.y, topic.r + 10, 0, 7);
      pen.fillStyle = colour(topic, Number(style("--disc")) / (focus !== null && focus !== topic.id ? 3 : 1));
      pen.fill();
    }
    if (!moving) drawEdges(ink);
    for (const [id, path] of paths) {
      pen.fillStyle = colour(topicOf.get(id), matches || (focus !== null && focus !== (topicOf.has(id) ? id : 0)) ? 0.16 : 0.92);
      pen.fill(path);
    }
    for (const index of matches || []) one(nodes[index], ink, 1.5);
    if (hovered !== null) one(nodes[hovered], ink, 1.5);
    if (chosen !== null) one(nodes[chosen], ink, 2.5);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLabels(ink, style("--back"));
    canvas.dataset.drawn = nodes.length;
  }
  function one(node, ink, line) {
    const path = new Path2D();
    shape(path, node, Math.max(node.r, 2.5 / view.scale));
    pen.fillStyle = colour(topicOf.get(node.topic), 0.92);
    pen.fill(path);
    pen.lineWidth = line / view.scale; pen.strokeStyle = ink; pen.stroke(path);
  }
  function drawEdges(ink) {
    const plain = { similar: [0.7, 0.16], co_occurs: [1.4, 0.4], abstracted_from: [0.8, 0.3] };
    for (const [kind, path] of lines) {
      const [line, alpha] = plain[kind] || plain.similar;
      pen.strokeStyle = ink; pen.globalAlpha = alpha * (matches || focus !== null ? 0.3 : 1); pen.lineWidth = line / view.scale;
      pen.setLineDash(kind === "abstracted_from" ? [4 / view.scale, 4 / view.scale] : []);
      pen.stroke(path);
    }
    pen.setLineDash([]); pen.globalAlpha = 1;
    if (chosen === null) return;
    pen.beginPath();
    for (const [a, b] of graph.edges) if (a === chosen || b === chosen) { pen.moveTo(nodes[a].x, nodes[a].y); pen.lineTo(nodes[b].x, nodes[b].y); }
    pen.lineWidth = 1.6 / view.scale; pen.strokeStyle = ink; pen.stroke();
  }
  // Labels: topics first, the largest before the others, then nodes where they are large enough; none over another.
  function drawLabels(ink, back) {
    const taken = [];
    pen.textAlign = "center"; pen.lineJoin = "round";
    const put = (text, x, y, size, bold) => {
      pen.font = `${bold ? 600 : 400} ${size}px system-ui, sans-serif`;
      const half = pen.measureText(text).width / 2, here = [x - half - 3, y - size, x + half + 3, y + 4];
      if (here[2] < 0 || here[0] > width || here[3] < 0 || here[1] > height) return false;
      if (taken.some((o) => here[0] < o[2] && here[2] > o[0] && here[1] < o[3] && here[3] > o[1])) return false;
      taken.push(here);
      pen.lineWidth = 4; pen.strokeStyle = back; pen.strokeText(text, x, y);
      pen.fillStyle = ink; pen.fillText(text, x, y);
      return true;
    };
    if (chosen !== null) { const node = nodes[chosen], [x, y] = screen(node.x, node.y); put(cut(node.label, 60), x, y - node.r * view.scale - 6, 14, true); }
    for (const topic of topics) {
      if (focus !== null && focus !== topic.id) continue;
      const [x, y] = screen(topic.x, topic.y), r = (topic.r + 10) * view.scale;
      if (r < 9) continue;
      const size = Math.max(11, Math.min(19, 8 + r / 14)), text = cut(topic.label, Math.max(18, Math.floor((2.6 * r) / (size * 0.55))));
      put(text, x, Math.max(Math.min(size + 6, y), y - r - 4), size, true) || put(text, x, y + r + size + 2, size, true) || put(text, x, y + size / 3, size, true);
    }
    if (moving) return;
    const shown = nodes.filter((node) => node.index !== chosen && (matches ? matches.has(node.index) && (matches.size <= 12 || node.r * view.scale > 13) : node.r * view.scale > 13 && (focus === null || node.topic === focus)));
    for (const node of shown.sort((a, b) => b.r - a.r).slice(0, 400)) {
      const [x, y] = screen(node.x, node.y);
      if (x >= 0 && x <= width && y >= 0 && y <= height) put(cut(node.label, view.scale > 3 ? 48 : 26), x, y + node.r * view.scale + 13, 11.5, false);
    }
  }
  function later() { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } }
  function move() { clearTimeout(moving); moving = setTimeout(() => { moving = 0; later(); }, 120); later(); }

  function fit(list, most = 6) {
    if (!list.length || !width) return later();
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y, r } of list) { left = Math.min(left, x - r); right = Math.max(right, x + r); top = Math.min(top, y - r); bottom = Math.max(bottom, y + r); }
    view.x = (left + right) / 2; view.y = (top + bottom) / 2;
    view.scale = Math.min(most, Math.max(0.02, Math.min((width - 40) / (right - left + 1), (height - 40) / (bottom - top + 1))));
    return later();
  }
  const fitAll = () => fit([...topics.map(({ x, y, r }) => ({ x, y, r: r + 20 })), ...nodes], 2.5);
  function zoom(by, x = width / 2, y = height / 2) {
    const [wx, wy] = world(x, y);
    view.scale = Math.min(12, Math.max(0.02, view.scale * by));
    view.x = wx - (x - width / 2) / view.scale; view.y = wy - (y - height / 2) / view.scale;
    move();
  }
  function nearest(x, y) {
    const [wx, wy] = world(x, y);
    let best = null, least = 0;
    for (const node of nodes) { const away = Math.hypot(node.x - wx, node.y - wy) - Math.max(node.r, 5 / view.scale); if (away <= least) { least = away; best = node.index; } }
    return best;
  }
  let drag = null;
  canvas.onpointerdown = (event) => { drag = { x: event.offsetX, y: event.offsetY, moved: false }; canvas.setPointerCapture(event.pointerId); };
  canvas.onpointermove = (event) => {
    if (drag) {
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
      if (drag.moved || Math.hypot(dx, dy) > 4) { drag = { x: event.offsetX, y: event.offsetY, moved: true }; view.x -= dx / view.scale; view.y -= dy / view.scale; move(); }
      return;
    }
    const here = nearest(event.offsetX, event.offsetY);
    if (here !== hovered) { hovered = here; later(); }
    over(here === null ? null : nodes[here], event.offsetX, event.offsetY);
  };
  canvas.onpointerup = (event) => { if (drag && !drag.moved) choose(nearest(event.offsetX, event.offsetY)); drag = null; };
  canvas.onpointerleave = () => { hovered = null; over(null); later(); };
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY); }, { passive: false });
  const resize = () => {
    const ratio = devicePixelRatio || 1, first = !width;
    width = canvas.clientWidth; height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    if (first) fitAll();
    draw();
  };
  const watch = new ResizeObserver(resize);
  watch.observe(canvas);
  resize();
  return {
    nodes, topics, topicOf, colour, cut, zoom, fit, fitAll, redraw: later,
    close: () => watch.disconnect(),
    focus: (id) => { focus = id; if (id === null) fitAll(); else fit(id ? [topicOf.get(id)] : nodes.filter((node) => !topicOf.has(node.topic)), 3); },
    match: (found) => { matches = found; later(); },
    choose: (index, centre) => { chosen = index; if (centre && index !== null) { view.x = nodes[index].x; view.y = nodes[index].y; view.scale = Math.max(view.scale, 1.6); } later(); },
  };
}
