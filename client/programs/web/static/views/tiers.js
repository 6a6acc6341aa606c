// Where memories are and how turns moved; the turns in L0; what was not kept, and why.

import { draw, head, html, Places, scope, show, tabs, useReport, useState } from "../ui.js";

const TABS = [["L0", "Turns in L0"], ["skipped", "Skipped, and why"], ["places", "By namespace"]];

export default function Tiers() {
  const [chosen, choose] = useState(""), [tab, open] = useState("L0"), report = useReport("tiers", { ...scope(chosen), tab }, ["observed", "promoted", "dropped", "job", "moved"]);
  return html`${head("Tiers", html`<${Places} value=${chosen} change=${choose} />`)}<div class="scroll">${show(report, ([flow, shown]) => [draw(flow), tabs("Turns", TABS, tab, open), draw(shown)])}</div>`;
}
