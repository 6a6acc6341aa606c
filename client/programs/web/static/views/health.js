// The machine: how the daemon is, and below it its tiers, its jobs, and the topics that it found.

import { go } from "../hooks.js";
import Jobs from "../machine/jobs.js";
import State from "../machine/state.js";
import Tiers from "../machine/tiers.js";
import Topics from "../machine/topics.js";
import { html, tabs } from "../parts.js";

const PARTS = { state: State, tiers: Tiers, jobs: Jobs, topics: Topics };
const TABS = [
  ["state", "Health"],
  ["tiers", "Tiers"],
  ["jobs", "Jobs"],
  ["topics", "Topics"],
];

export default function Health({ where: { query } }) {
  const tab = query.get("tab") in PARTS ? query.get("tab") : "state";
  const menu = tabs("The machine", TABS, tab, (key) => go(`/health?tab=${key}`));
  return html`<${PARTS[tab]} key=${tab} menu=${menu} />`;
}
