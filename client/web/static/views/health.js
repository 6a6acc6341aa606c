// How the daemon is: what doctor finds with the commands that fix it (shown, not run), how quick it is, who is there.

import { button, draw, head, html, show, useReport } from "../ui.js";

export default function Health() {
  const found = useReport("doctor"), health = useReport("health");
  return html`${head("Health", button("Look again", () => { found.reload(); health.reload(); }))}<div class="scroll grid">${show(found, draw)}${show(health, draw)}</div>`;
}
