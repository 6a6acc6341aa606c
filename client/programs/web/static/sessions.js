// The last sessions of a project: what was asked, what was answered, which files; each opens into its conversation.

import { callAll } from "./api.js";
import { show, useAnswer, useCall, useState } from "./hooks.js";
import { about, button, dim, html, list, time } from "./parts.js";
import { showTurn } from "./past.js";
import { count, line } from "./text.js";

const SHOWN = 5;
const TURNS = 200; // of a conversation
const CHARS = 300; // of what was asked and answered
const NONE = html`No session was recorded here yet. Hooks record what is said to an agent:
  ${" "}<code>memctl hooks install claude-code</code>`;

export function Sessions({ namespace }) {
  const answer = useCall("get_log", { namespace, reach: "exact", limit: SHOWN }, { kinds: ["observed"] });
  return html`<section aria-label="Last sessions"><h2>Last sessions</h2>
    ${show(answer, ({ sessions }) => {
      const keyed = sessions.map((one) => ({ ...one, id: one.session }));
      return keyed.length ? list(keyed, (one) => html`<${Session} one=${one} />`) : dim(NONE);
    })}</section>`;
}

// Turns of a session, the latest first: those in L0, then those that are memories by now.
async function readTurns({ namespace, session }, limit, more = {}) {
  const within = { namespace, reach: "exact" };
  const [{ turns }, { memories }] = await callAll([
    ["turns", { ...within, session, limit }],
    ["list", { ...within, type: ["turn"], where: { session, ...more }, limit }],
  ]);
  const active = turns.map((turn) => ({ ...turn, metadata: { role: turn.role, speaker: turn.speaker } }));
  return [...active, ...memories];
}

async function readAnswer(one) {
  const turns = await readTurns(one, SHOWN, { role: "assistant" });
  return turns.find((turn) => turn.metadata.role === "assistant")?.content || one.summary || "–";
}

function Session({ one }) {
  const [isOpen, open] = useState(false);
  const { value } = useAnswer(() => readAnswer(one), [one.session, one.ended_at]);
  const title = html`<span class="one">${line(one.asked).slice(0, CHARS) || line(one.session)}</span>`;
  const files = one.files.length > 0 && count(one.files.length, "file");
  return html`<article class="saved">
    ${button(title, () => open(!isOpen), { class: "link what", "aria-expanded": isOpen, "data-row": one.session })}
    <div class="one dim">${line(value).slice(0, CHARS)}</div>
    ${about(time(one.ended_at), count(one.turns, "turn"), files)}
    ${isOpen && html`<${Whole} one=${one} />`}</article>`;
}

function Whole({ one }) {
  const answer = useAnswer(() => readTurns(one, TURNS), [one.session, one.ended_at]);
  const files = one.files.map((name) => html`<code>${name}</code> `);
  return html`${files.length > 0 && html`<p>${files}</p>`}
    ${show(answer, (turns) => [...turns].sort((a, b) => a.created_at - b.created_at).map((turn) => showTurn(turn)))}`;
}
