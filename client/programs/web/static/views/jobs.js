// What runs by itself: when, how it went, what it would do now; a plan is applied as it was shown, and undone as a whole.

import { head, html, Report, useOn, useState } from "../ui.js";

export default function Jobs() {
  const [job, plan] = useState("");
  useOn("plan", plan);
  return html`${head("Jobs")}<div class="scroll">${job && html`<${Report} name="plan" fields=${{ job }} />`}<${Report} name="jobs" kinds=${["job"]} /></div>`;
}
