// All memories as a list of any length, and one of them: read, edited in place, pinned, tagged, rated, shared, deleted.

import { act, call, emit, note, say } from "../api.js";
import { About, Badge, Choice, Diff, Empty, Head, Loading, Places, Problem, Rows, Safe, Time, copy, count, fixed, go, html, line, number, place, scope, short, useCall, useEffect, useKeys, useOn, usePages, useRef, useState } from "../ui.js";

const SORTS = [["created", "newest"], ["updated", "last changed"], ["accessed", "last read"], ["count", "most read"], ["importance", "importance"]];
const plain = (value) => (value === null || value === undefined || value === "" ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

// Changes of one or many memories: what each returned is undone together.
async function remove(ids) {
  return act(`Deleted ${count(ids.length, "memory", "memories")}`, async () => [(await call("delete", { ids, reach: "all" })).operation]);
}
async function each(ids, text, work) {
  const operations = [];
  let failed = null;
  for (const id of ids) try { operations.push((await work(id)).operation); } catch (error) { failed = failed || error; }
  if (operations.length) note(text, operations);
  if (failed) emit("toast", { text: failed.message, bad: true });
  return !failed;
}

export default function Memories({ where }) {
  const id = where.rest[0] || "";
  const [namespace, choose] = useState(""), [type, chooseType] = useState(""), [tier, chooseTier] = useState(""), [sort, order] = useState("created");
  const [marked, mark] = useState(new Set()), [at, move] = useState(-1), [fresh, setFresh] = useState(0);
  const stats = useCall("stats", { reach: "all" });
  const pages = usePages({ ...scope(namespace), type: type ? [type] : [], tier: tier ? [tier] : [], sort, all_states: true });
  const list = useRef(null);
  const reload = () => { setFresh(0); pages.reload(); };
  useOn("changed", reload);
  useOn("event", (event) => { if (["created", "deleted", "moved", "promoted"].includes(event.kind)) setFresh((many) => many + event.count); });
  const current = () => (at >= 0 ? pages.at(at) : null);
  const turn = (memory) => memory && mark((before) => { const after = new Set(before); if (!after.delete(memory.id)) after.add(memory.id); return after; });
  const step = (by) => { if (!pages.total) return; const next = Math.max(0, Math.min(pages.total - 1, at + by)); move(next); requestAnimationFrame(() => list.current?.querySelector(`[data-at="${next}"]`)?.focus({ preventScroll: true })); };
  const removeMarked = async () => { const ids = marked.size ? [...marked] : current() ? [current().id] : id ? [id] : []; if (ids.length && (await remove(ids))) { mark(new Set()); if (ids.includes(id)) go("/memory"); } };
  useKeys({ j: () => step(1), k: () => step(-1), x: () => turn(current()), "#": removeMarked, Escape: () => (marked.size ? mark(new Set()) : id && go("/memory")) });
  const row = (index) => {
    const memory = pages.at(index);
    if (!memory) return html`<div class="row"><span></span><span class="dim">…</span></div>`;
    return html`<div class=${`row ${marked.has(memory.id) ? "on" : ""} ${memory.id === id ? "open" : ""}`}>
      <input type="checkbox" aria-label=${`Select ${short(memory.id)}`} checked=${marked.has(memory.id)} onChange=${() => turn(memory)} />
      <div><a href=${`#/m/${memory.id}`} data-at=${index} onFocus=${() => move(index)} class="one">${line(memory.content.slice(0, 400)) || "(empty)"}</a><${About} memory=${memory} /></div></div>`;
  };
  return html`<${Head} title="Memory">
      <${Places} value=${namespace} change=${choose} names=${Object.keys(stats.value?.by_namespace || {})} />
      <${Choice} label="Type" value=${type} change=${chooseType} all="all" options=${Object.keys(stats.value?.by_type || {})} />
      <${Choice} label="Tier" value=${tier} change=${chooseTier} all="all" options=${["L1", "L2", "documents"]} />
      <${Choice} label="Order" value=${sort} change=${order} options=${SORTS} /><//>
    <div class=${`split ${id ? "one" : "two"}`}>
      <div class="list" ref=${list} style=${{ display: id ? undefined : "block" }}>
        ${fresh > 0 && html`<button class="new main" onClick=${reload}>${number(fresh)} changed</button>`}
        ${pages.error && html`<${Problem} error=${pages.error} />`}
        ${pages.total === null && !pages.error && html`<${Loading} />`}
        ${pages.total === 0 && html`<${Empty}>${namespace || type || tier ? "No memory is like that." : html`<p>There are no memories yet.</p><p>Add one with <code>memctl add "We deploy on Tuesdays"</code>, or let your agent remember: <code>memctl hooks install claude-code</code>.</p>`}<//>`}
        ${pages.total > 0 && html`<${Rows} total=${pages.total} height=${58} row=${row} label=${`${number(pages.total)} memories`} at=${at} />`}
      </div>
      <div class="side">${id ? html`<${Safe} key=${id}><${One} id=${id} /><//>` : html`<p class="dim">${pages.total ? `${count(pages.total, "memory", "memories")}. Choose one to read it.` : ""}</p>`}</div>
    </div>
    ${marked.size > 0 && html`<${Bulk} ids=${[...marked]} clear=${() => mark(new Set())} remove=${removeMarked} names=${Object.keys(stats.value?.by_namespace || {})} />`}`;
}

function Bulk({ ids, clear, remove: removeAll, names }) {
  const [tag, type] = useState(""), [to, choose] = useState("/");
  const many = count(ids.length, "memory", "memories");
  const addTag = async () => { if (tag.trim() && (await each(ids, `Tagged ${many}`, (id) => call("tag", { id, tags: [tag.trim()], reach: "all" })))) type(""); };
  const share = () => act(`Shared ${many} with ${place(to === "/" ? "" : to)}`, async () => [(await call("share", { ids, to: to === "/" ? "" : to, reach: "all" })).operation]);
  return html`<div class="bulk" role="toolbar" aria-label="Selected memories"><b>${number(ids.length)} selected</b>
    <input value=${tag} placeholder="tag" aria-label="Tag for the selected memories" size="10" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && addTag()} /><button onClick=${addTag}>Tag</button>
    <${Choice} label="Share with" value=${to} change=${choose} options=${enclosing(names)} /><button onClick=${share}>Share</button>
    <button class="danger" onClick=${removeAll}>Delete (#)</button><button onClick=${clear}>Clear</button></div>`;
}
// The namespaces that enclose others: memories are shared outward.
const enclosing = (names) => [...new Set(names.flatMap((name) => name.split("/").map((_, index, parts) => parts.slice(0, index).join("/"))))].map((name) => [name || "/", place(name)]);

function One({ id }) {
  const { value: memory, error, reload } = useCall("get", { id, touch: false, reach: "all" });
  const past = useCall("history", { id, reach: "all" });
  const [draft, edit] = useState(null), field = useRef(null);
  useOn("changed", () => { reload(); past.reload(); });
  useOn("event", (event) => event.id === memory?.id && draft === null && (reload(), past.reload()));
  useEffect(() => { if (draft !== null) field.current?.focus(); }, [draft !== null]);
  const change = (text, fields) => act(text, async () => [(await call("update", { id, reach: "all", ...fields })).operation]);
  const save = async () => { if (draft === memory.content) return edit(null); if (await change("Changed the text", { content: draft })) edit(null); };
  const pin = () => memory && change(memory.pinned ? "Unpinned" : "Pinned", { pinned: !memory.pinned });
  const fromFile = memory?.tier === "documents", turn = memory?.tier === "L0";
  useKeys({ e: () => memory && !fromFile && !turn && edit(memory.content), p: () => !fromFile && !turn && pin() });
  if (error) return html`<p><a href="#/memory">All memories</a></p><${Problem} error=${error} />${error.code === "not_found" && past.value && html`<${Past} changes=${past.value.changes} />`}`;
  if (!memory) return html`<${Loading} />`;
  const tags = Array.isArray(memory.metadata.tags) ? memory.metadata.tags : [];
  return html`<p class="about"><a href="#/memory">All memories</a><button class="link mono" title="Copy the id" onClick=${() => { copy(memory.id); say("Copied the id."); }}>${short(memory.id)}</button></p>
    <p><${About} memory=${memory} /></p>
    ${fromFile && html`<p class="dim">A part of <code>${memory.path}${memory.start_line ? `:${memory.start_line}–${memory.end_line}` : ""}</code>. Edit the file: what it says is what is remembered.</p>`}
    ${turn && html`<p class="dim">A turn of a conversation, still in L0: it becomes a memory when it leaves it.</p>`}
    ${draft === null ? html`<p class="text body">${memory.content}</p>` : html`<div><textarea ref=${field} aria-label="Text of the memory" value=${draft} onInput=${(event) => edit(event.target.value)} onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(); else if (event.key === "Escape") edit(null); }}></textarea>
      <div class="acts"><button class="main" onClick=${save}>Save (Ctrl+Enter)</button><button onClick=${() => edit(null)}>Cancel</button></div></div>`}
    <div class="acts">${!fromFile && !turn && draft === null && html`<button onClick=${() => edit(memory.content)}>Edit (e)</button><button aria-pressed=${memory.pinned} onClick=${pin}>${memory.pinned ? "Unpin" : "Pin"} (p)</button><${Rate} id=${memory.id} />`}
      ${!fromFile && html`<button class="danger" onClick=${async () => { if (await remove([memory.id])) go("/memory"); }}>Delete (#)</button>`}</div>
    ${!fromFile && !turn && html`<${Tags} id=${memory.id} tags=${tags} />`}
    <section><h3>About it</h3><dl class="facts">
      <dt>remembered</dt><dd><${Time} at=${memory.created_at} />, by ${memory.source}</dd><dt>changed</dt><dd><${Time} at=${memory.updated_at} /></dd>
      <dt>read</dt><dd>${memory.access_count ? html`${count(memory.access_count, "time")}, last <${Time} at=${memory.last_accessed_at} />` : "never"}</dd><dt>importance</dt><dd>${fixed(memory.importance, 2)}</dd>
      ${memory.expires_at && html`<dt>leaves search</dt><dd><${Time} at=${memory.expires_at} /></dd>`}${memory.summary && html`<dt>summary</dt><dd>${memory.summary}</dd>`}
      ${memory.path && !fromFile && html`<dt>file</dt><dd>${memory.path}</dd>`}${memory.superseded_by && html`<dt>replaced by</dt><dd><a href=${`#/m/${memory.superseded_by}`}>${short(memory.superseded_by)}</a></dd>`}
      ${memory.usefulness && html`<dt>feedback</dt><dd>${number(memory.usefulness.useful)} useful, ${number(memory.usefulness.useless)} not, cited ${number(memory.usefulness.cited)} times${memory.usefulness.notes.map((text) => html`<br /><span class="dim">“${text}”</span>`)}</dd>`}
      ${Object.entries(memory.metadata).filter(([name]) => name !== "tags").map(([name, value]) => html`<dt>${name}</dt><dd>${plain(value)}</dd>`)}</dl></section>
    ${memory.contradicts.length > 0 && html`<section><h3>Disagrees with</h3><ul>${memory.contradicts.map((other) => html`<${Other} key=${other} id=${other} mine=${memory.id} />`)}</ul></section>`}
    ${[...memory.links, ...memory.linked_from].length > 0 && html`<section><h3>Links</h3><ul>${memory.links.map((text) => html`<li>to ${text}</li>`)}${memory.linked_from.map((text) => html`<li>from ${text}</li>`)}</ul></section>`}
    ${past.value && html`<${Past} changes=${past.value.changes} />`}`;
}

function Rate({ id }) {
  const rate = (useful) => act(useful ? "Rated as useful" : "Rated as not useful", async () => [(await call("feedback", { id, useful, reach: "all" })).operation]);
  return html`<button onClick=${() => rate(true)}>Useful</button><button onClick=${() => rate(false)}>Not useful</button>`;
}

function Tags({ id, tags }) {
  const [word, type] = useState("");
  const add = async () => { if (word.trim() && (await act(`Tagged with ${word.trim()}`, async () => [(await call("tag", { id, tags: [word.trim()], reach: "all" })).operation]))) type(""); };
  const drop = (tag) => act(`Removed the tag ${tag}`, async () => [(await call("update", { id, reach: "all", metadata: { tags: tags.filter((other) => other !== tag) } })).operation]);
  return html`<div class="acts">${tags.map((tag) => html`<${Badge} key=${tag}>${plain(tag)} <button class="link" aria-label=${`Remove the tag ${tag}`} onClick=${() => drop(tag)}>×</button><//>`)}<input value=${word} placeholder="add a tag" aria-label="Add a tag" size="10" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && add()} /></div>`;
}

function Other({ id, mine }) {
  const { value } = useCall("get", { id, touch: false, reach: "all" });
  const dismiss = async () => { try { await call("dismiss_link", { id: mine, other: id, reach: "all" }); emit("changed"); say("They are not linked any more."); } catch (error) { emit("toast", { text: error.message, bad: true }); } };
  return html`<li><a href=${`#/m/${id}`}>${line(value?.content) || short(id)}</a> <button onClick=${dismiss}>They do not disagree</button></li>`;
}

function Past({ changes }) {
  return html`<section><h3>History</h3><ul>${[...changes].reverse().map((one) => html`<li key=${one.operation} class="panel"><p class="about"><${Time} at=${one.at} /><${Badge}>${one.kind}<//><span>operation ${one.operation}</span>${one.token && html`<span>${one.token}</span>`}</p>
    ${one.action === "updated" && Object.entries(one.changed).map(([name, [was, is]]) => (name === "content" ? html`<${Diff} before=${was} after=${is} />` : html`<p class="one"><span class="dim">${name}:</span> ${plain(was)} → ${plain(is)}</p>`))}
    ${one.action !== "updated" && html`<p>${one.action}${one.changed.content && one.action === "deleted" ? html`: <span class="text">${plain(one.changed.content[0])}</span>` : ""}</p>`}</li>`)}</ul></section>`;
}
