// How the daemon is: what is under way, what doctor finds with the commands that fix it (shown, not run), how quick it is.

import { button, draw, head, html, show, useEffect, useReport } from "../ui.js";

const AGAIN_MS = 2000;

export default function Health() {
  const far = useReport("progress"), found = useReport("doctor"), health = useReport("health");
  useEffect(() => { const beat = setInterval(() => document.hidden || far.reload(), AGAIN_MS); return () => clearInterval(beat); }, []);
  return html`${head("Health", button("Look again", () => { found.reload(); health.reload(); }))}<div class="scroll grid">${show(far, draw)}${show(found, draw)}${show(health, draw)}</div>`;
}
