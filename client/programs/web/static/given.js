// What agents were given, by session, and what a person says of it: useful, wrong, never again.

import { run } from "./api.js";
import { show, useCall, useEffect, useKeys, useOn, useRef, useState } from "./hooks.js";
import { about, badge, button, DANGER, dim, html, row, time } from "./parts.js";
import { line, memories, place, session } from "./text.js";

const LINE_CHARS = 300;
const SESSIONS = 50;
const KINDS = ["observed", "created"];
// What the sessions of a project were given, `since` a time in seconds; `none` is shown when that is nothing.
export function Given({ namespace, since, none }) {
  const [asked, ask] = useState(null);
  useOn("changed", () => ask(null));
  useKeys({ Escape: () => (asked ? ask(null) : false) }, 2);
  const reach = namespace ? "visible" : "exact"; // what is shared with the project is given there, too
  const answer = useCall("list_given", { namespace, reach, since, limit: SESSIONS }, { kinds: KINDS });
  const never = asked && html`<${NeverAgain} asked=${asked} close=${() => ask(null)} />`;
  return show(answer, ({ sessions }) => {
    const own = sessions.filter((one) => one.namespace === namespace);
    return own.length ? html`${own.map((one) => showSession(one, ask))}${never}` : none;
  });
}

function showSession(one, ask) {
  const key = `${one.namespace} ${one.session}`;
  return html`<section class="panel" key=${key}>
    ${about(one.agent && badge(one.agent), session(one.session), time(one.at))}
    ${one.lines.map((given) => html`<${Line} key=${given.id} one=${one} given=${given} ask=${ask} />`)}</section>`;
}

function Line({ one, given, ask }) {
  const elsewhere = given.namespace !== one.namespace && place(given.namespace);
  return html`<div class="hit said line">
    <div>${row(given.id, line(given.text).slice(0, LINE_CHARS))}
      ${about(badge(given.type), elsewhere, time(given.at), given.path)}</div>
    <div class="acts"><${Acts} one=${one} given=${given} ask=${ask} /></div></div>`;
}

// A part of a file is corrected in the file, a turn of L0 is not rated.
function Acts({ one, given: { id, tier }, ask }) {
  const rate = () => run("Rated as useful", "feedback", { id, reach: "all", useful: true });
  const drop = () => run("Deleted as wrong", "delete", { ids: [id], reach: "all" });
  const never = () => ask({ id, namespace: one.namespace, session: one.session });
  if (tier === "documents") return html`${button("Useful", rate)}${dim("Is it wrong? Edit the file.")}`;
  return html`${tier !== "L0" && button("Useful", rate)}${button("Wrong", drop)}${button("Never again", never)}`;
}

// What can be done so that something is never shown again: erasing it, and pausing where it came from.
function NeverAgain({ asked: { id, namespace, session: name }, close }) {
  const box = useRef();
  const plan = useCall("erase", { ids: [id], reach: "all", dry_run: true });
  useEffect(() => box.current.focus(), [id]);
  const erase = () => run("Erased for good", "erase", { ids: [id], reach: "all" });
  const pause = (kind, what) => {
    const fields = { kind, name: what };
    const resume = () =>
      run("Observing is resumed", "pause_observing", { ...fields, resume: true }, () => pause(kind, what));
    return run("Observing is paused", "pause_observing", fields, resume);
  };
  const made = plan.value?.derived.length ? ` and ${memories(plan.value.derived.length)} made of it` : "";
  return html`<div class="bulk" role="region" aria-label="Never again" tabindex="-1" ref=${box}>
    ${show(
      plan,
      () => html`<div><b>Never again</b>
      ${dim(`Erasing takes this text${made} and its history off the disk; no undo brings it back.`)}
      <div class="acts">${button("Erase it for good", erase, DANGER)}
        ${button(`Record nothing more of ${place(namespace)}`, () => pause("namespace", namespace))}
        ${name && button("Record nothing more of this session", () => pause("session", name))}
        ${button("Cancel", close)}</div></div>`,
    )}</div>`;
}
