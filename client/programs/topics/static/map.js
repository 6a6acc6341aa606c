// The map of nodes on a canvas. `graph export --format html` has the same text in its page.
// The nodes of a topic are one path that is filled at once; edges are left out while the map moves.

export function createMap(canvas, graph, { choose, over, dark }) {
  const pen = canvas.getContext("2d"), view = { x: 0, y: 0, scale: 1 };
  const nodes = graph.nodes.map((node, index) => ({ ...node, index })), topics = graph.topics.map((topic, rank) => ({ ...topic, rank }));
  const topicOf = new Map(topics.map((topic) => [topic.id, topic])), paths = gather(nodes), lines = { similar: new Path2D(), co_occurs: new Path2D(), abstracted_from: new Path2D() };
  for (const [a, b, kind] of graph.edges) join(lines[kind], a, b);
  let width = 0, height = 0, lit = null, bright = paths, chosen = null, hovered = null, waiting = 0, moving = 0, drag = null;

  function join(path, a, b) { path.moveTo(nodes[a].x, nodes[a].y); path.lineTo(nodes[b].x, nodes[b].y); }
  function outline(path, { kind, x, y, r }) {
    if (kind === "concept") return path.rect(x - r, y - r, 2 * r, 2 * r);
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 7);
  }
  function gather(list) {
    const found = new Map();
    for (const node of list) { if (!found.has(node.topic)) found.set(node.topic, new Path2D()); outline(found.get(node.topic), node); }
    return found;
  }
  // Hues a golden angle apart, in three lightnesses, so that neighbours in the legend differ.
  function colour(topic, alpha = 1) {
    if (!topic) return `hsl(215 8% 55% / ${alpha})`;
    const light = (dark() ? [66, 56, 76] : [44, 54, 34])[Math.floor(topic.rank / 8) % 3];
    return `hsl(${((210 + topic.rank * 137.508) % 360).toFixed(0)} 62% ${light}% / ${alpha})`;
  }
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const screen = (x, y) => [(x - view.x) * view.scale + width / 2, (y - view.y) * view.scale + height / 2];
  const world = (x, y) => [(x - width / 2) / view.scale + view.x, (y - height / 2) / view.scale + view.y];
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

  function draw() {
    waiting = 0;
    const ratio = devicePixelRatio, scale = ratio * view.scale, ink = style("--ink"), [left, top] = screen(0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.setTransform(scale, 0, 0, scale, ratio * left, ratio * top);
    const fill = (path, topic, alpha) => { pen.fillStyle = colour(topic, alpha); pen.fill(path); };
    for (const topic of topics) { const disc = new Path2D(); disc.arc(topic.x, topic.y, topic.r + 10, 0, 7); fill(disc, topic, style("--disc") / (lit ? 3 : 1)); }
    if (!moving) drawEdges(ink);
    if (lit) for (const [id, path] of paths) fill(path, topicOf.get(id), 0.16);
    for (const [id, path] of bright) fill(path, topicOf.get(id), 0.92);
    for (const [index, line] of [[hovered, 1.5], [chosen, 2.5]]) if (index !== null) {
      const path = new Path2D(), node = nodes[index];
      outline(path, { ...node, r: Math.max(node.r, 2.5 / view.scale) });
      fill(path, topicOf.get(node.topic));
      stroke(path, ink, line);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLabels(ink, style("--back"));
    canvas.dataset.drawn = nodes.length;
  }
  function stroke(path, ink, line, alpha = 1) {
    Object.assign(pen, { strokeStyle: ink, lineWidth: line / view.scale, globalAlpha: alpha });
    pen.stroke(path);
    pen.globalAlpha = 1;
  }
  function drawEdges(ink) {
    for (const [kind, line, alpha] of [["similar", 0.7, 0.16], ["co_occurs", 1.4, 0.4], ["abstracted_from", 0.8, 0.3]]) stroke(lines[kind], ink, line, lit ? alpha / 3 : alpha);
    const own = new Path2D();
    for (const [a, b] of graph.edges) if (a === chosen || b === chosen) join(own, a, b);
    stroke(own, ink, 1.6);
  }
  // Labels: topics first, the largest in sight, as many as the width allows, then nodes where they are large enough; none over another.
  function drawLabels(ink, back) {
    const taken = [];
    Object.assign(pen, { textAlign: "center", lineJoin: "round", lineWidth: 4, strokeStyle: back, fillStyle: ink });
    const put = (text, x, y, size, weight) => {
      pen.font = `${weight} ${size}px system-ui, sans-serif`;
      const half = pen.measureText(text).width / 2 + 3, at = Math.max(half, Math.min(width - half, x)), here = [at - half, y - size, at + half, y + 4], meets = (o) => here[0] < o[2] && here[2] > o[0] && here[1] < o[3] && here[3] > o[1];
      if (Math.abs(at - x) > half || !meets([0, 0, width, height]) || taken.some(meets)) return false;
      pen.strokeText(text, at, y);
      pen.fillText(text, at, y);
      return taken.push(here);
    };
    const name = (node, most, weight, size) => { const [x, y] = screen(node.x, node.y); put(cut(node.label, most), x, y + node.r * view.scale + 13, size, weight); };
    if (chosen !== null) name(nodes[chosen], 60, 600, 14);
    for (const topic of topics) {
      const [x, y] = screen(topic.x, topic.y), r = (topic.r + 10) * view.scale, size = Math.max(11, Math.min(19, 8 + r / 14)), text = cut(topic.label, Math.max(18, Math.floor((4.7 * r) / size)));
      if (taken.length < width / 30 && r >= 9 && bright.has(topic.id)) [Math.max(Math.min(size + 6, y), y - r - 4), y + r + size + 2, y + size / 3].some((at) => put(text, x, at, size, 600));
    }
    if (moving) return;
    const shown = nodes.filter((node) => (!lit || lit.has(node.index)) && (node.r * view.scale > 13 || lit?.size <= 12)).sort((a, b) => b.r - a.r);
    for (const node of shown.slice(0, 400)) name(node, view.scale > 3 ? 48 : 26, 400, 11.5);
  }
  function redraw() { waiting ||= requestAnimationFrame(draw); }
  function move() { clearTimeout(moving); moving = setTimeout(() => { moving = 0; redraw(); }, 120); redraw(); }

  function fit(list, most = 6) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const { x, y, r } of list) { left = Math.min(left, x - r); right = Math.max(right, x + r); top = Math.min(top, y - r); bottom = Math.max(bottom, y + r); }
    const scale = Math.max(0.02, Math.min(most, (width - 40) / (right - left + 1), (height - 40) / (bottom - top + 1)));
    if (list.length) Object.assign(view, { x: (left + right) / 2, y: (top + bottom) / 2, scale });
    redraw();
  }
  const fitAll = () => fit([...topics.map((topic) => ({ ...topic, r: topic.r + 20 })), ...nodes], 2.5);
  function zoom(by, x = width / 2, y = height / 2) {
    const [wx, wy] = world(x, y), scale = Math.min(12, Math.max(0.02, view.scale * by));
    Object.assign(view, { x: wx - (x - width / 2) / scale, y: wy - (y - height / 2) / scale, scale });
    move();
  }
  function nearest({ offsetX, offsetY }) {
    const [x, y] = world(offsetX, offsetY);
    let best = null, least = 0;
    for (const node of nodes) { const away = Math.hypot(node.x - x, node.y - y) - Math.max(node.r, 5 / view.scale); if (away <= least) { least = away; best = node.index; } }
    return best;
  }
  function light(list) { lit = list && new Set(list.map((node) => node.index)); bright = list ? gather(list) : paths; redraw(); }

  canvas.onpointerdown = (event) => { drag = { x: event.offsetX, y: event.offsetY, moved: false }; canvas.setPointerCapture(event.pointerId); };
  canvas.onpointermove = (event) => {
    const { offsetX: x, offsetY: y } = event;
    if (drag) {
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) <= 4) return;
      view.x -= (x - drag.x) / view.scale; view.y -= (y - drag.y) / view.scale;
      drag = { x, y, moved: true };
      return move();
    }
    hovered = nearest(event);
    over(nodes[hovered], x, y);
    redraw();
  };
  canvas.onpointerup = (event) => { if (!drag?.moved) choose(nearest(event)); drag = null; };
  canvas.onpointerleave = () => { hovered = null; over(); redraw(); };
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY); }, { passive: false });
  const resize = () => {
    const first = !width;
    width = canvas.clientWidth; height = canvas.clientHeight;
    canvas.width = width * devicePixelRatio; canvas.height = height * devicePixelRatio;
    if (first) fitAll();
    draw();
  };
  const watch = new ResizeObserver(resize);
  watch.observe(canvas);
  resize();
  return {
    nodes, topics, topicOf, colour, cut, zoom, fit, fitAll, redraw, light,
    close: () => watch.disconnect(),
    focus: (id) => { const list = id === null ? null : nodes.filter((node) => (topicOf.has(node.topic) ? node.topic : 0) === id); light(list); if (list) fit(list, 3); else fitAll(); },
    choose: (index, centre) => { chosen = index; if (centre && index !== null) Object.assign(view, { x: nodes[index].x, y: nodes[index].y, scale: Math.max(view.scale, 1.6) }); redraw(); },
  };
}
