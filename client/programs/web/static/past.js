// What is known of a memory beside its text: its conversation, files of that time, facts about it, its history.

import { call } from "./api.js";
import { useAnswer, useCall } from "./hooks.js";
import { about, badge, dim, facts, html, link, list, origin, row, section, time } from "./parts.js";
import { count, fixed, line, number, plain, session, short } from "./text.js";

const AROUND = 4; // turns before a memory, and after it
const TURN_CHARS = 300; // that are shown of each
const FILES = 20; // shown
const SPAN_S = 43_200; // of a conversation, before and after a memory
const DIFF_WORDS = 1000; // of a text whose difference is looked for

const isMissing = (error) => {
  if (!["not_found", "invalid"].includes(error.code)) throw error;
  return null;
};

// The conversation ----------------------------------------------------------------------------------------------------

async function readConversation({ id, namespace, created_at: at, metadata }) {
  const around = await call("get", { id, around: AROUND, touch: false, reach: "all" }).catch(isMissing);
  const said = around?.around || [];
  const files = said.flatMap((turn) => turn.metadata.files || []);
  if (metadata.session) {
    const fields = { session: metadata.session, namespace, reach: "exact" };
    const log = await call("get_log", { ...fields, since: Math.max(0, at - SPAN_S), until: at + SPAN_S });
    files.push(...log.sessions.flatMap((one) => one.files));
  }
  return { said, files: [...new Set(files)] };
}

// What was said around a memory, and the files of that time.
export function Conversation({ memory }) {
  const { value } = useAnswer(() => readConversation(memory), [memory.id]);
  if (!value) return null;
  const { said, files } = value;
  const more = files.length - FILES;
  return html`${
    said.length > 1 &&
    section(
      "Said around it",
      said.map((turn) => showTurn(turn, turn.id === memory.id)),
    )
  }
    ${
      files.length > 0 &&
      section(
        "Files of that time",
        list(files.slice(0, FILES), (name) => html`<code>${name}</code>`),
        more > 0 && dim(`and ${number(more)} more`),
      )
    }`;
}

export function showTurn(turn, isHere) {
  const text = line(turn.content.slice(0, TURN_CHARS));
  return html`<div class="hit" key=${turn.id}>
    ${about(turn.metadata.speaker || turn.metadata.role || turn.source, time(turn.created_at))}
    ${isHere ? html`<b>${text}</b>` : row(turn.id, text)}</div>`;
}

// About it ------------------------------------------------------------------------------------------------------------

export function About({ memory }) {
  const { usefulness, metadata } = memory;
  const read = memory.access_count > 0 && [
    `${count(memory.access_count, "time")}, last `,
    time(memory.last_accessed_at),
  ];
  const rest = Object.entries(metadata).filter(([name]) => name !== "tags");
  const pairs = [
    ["remembered", [time(memory.created_at), `, by ${memory.source}`]],
    ["origin", origin(memory)],
    ["changed", time(memory.updated_at)],
    ["read", read || "never"],
    ["importance", fixed(memory.importance, 2)],
    ["leaves search", memory.expires_at && time(memory.expires_at)],
    ["summary", memory.summary],
    ["file", memory.path],
    ["replaced by", memory.superseded_by && link(memory.superseded_by)],
    ["feedback", usefulness && showFeedback(usefulness)],
    ...rest.map(([name, value]) => [name, plain(value)]),
  ];
  const ends = [...memory.links.map((name) => `to ${name}`), ...memory.linked_from.map((name) => `from ${name}`)];
  return html`${section("About it", facts(pairs))}${
    ends.length > 0 &&
    section(
      "Links",
      list(ends, (text) => text),
    )
  }`;
}

function showFeedback({ useful, useless, cited, notes }) {
  const said = notes.map((note) => html`<br />“${note}”`);
  return html`${useful} useful, ${useless} not, cited ${cited} times${said}`;
}

// Its history ---------------------------------------------------------------------------------------------------------

export function Past({ id }) {
  const { value } = useCall("history", { id, reach: "all" }, { kinds: ["updated", "deleted"] });
  return value ? section("History", [...value.changes].reverse().map(showChange)) : null;
}

function showChange(change) {
  const title = about(
    time(change.at),
    badge(change.kind),
    `operation ${short(change.operation)}`,
    change.token,
    session(change.session),
    change.process,
  );
  const former = change.action === "deleted" && change.changed.content?.[0];
  const body =
    change.action === "updated"
      ? Object.entries(change.changed).map(([name, values]) => showField(name, ...values))
      : html`<p class="text">${former ? `deleted: ${former}` : change.action}</p>`;
  return html`<div class="panel" key=${change.operation}>${title}${body}</div>`;
}

function showField(name, was, is) {
  if (name === "content") return html`<p class="text">${compareWords(was || "", is || "").map(showPart)}</p>`;
  return html`<p class="one"><span class="dim">${name}: </span>${plain(was)} → ${plain(is)}</p>`;
}

function showPart([kind, text]) {
  if (kind === "del") return html`<del>${text}</del>`;
  return kind === "ins" ? html`<ins>${text}</ins>` : text;
}

// The words of both texts as pairs of `same`, `del` or `ins` and a text: those of a longest common subsequence are the
// same. Of long texts both are given whole.
export function compareWords(before, after) {
  const old = before.split(/(\s+)/);
  const now = after.split(/(\s+)/);
  if (Math.max(old.length, now.length) > 2 * DIFF_WORDS)
    return [
      ["del", before],
      ["ins", after],
    ];
  const width = now.length + 1;
  const common = new Uint16Array((old.length + 1) * width); // words in common from both places on
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      common[i * width + j] =
        old[i] === now[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const parts = [];
  const add = (kind, word) => {
    if (parts.at(-1)?.[0] === kind) parts.at(-1)[1] += word;
    else parts.push([kind, word]);
  };
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      add("same", old[i++]);
      j++;
    } else if (j === now.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      add("del", old[i++]);
    } else {
      add("ins", now[j++]);
    }
  }
  return parts;
}
