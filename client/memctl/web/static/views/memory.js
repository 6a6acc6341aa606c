// All memories as a list of any length, and one of them: read, edited in place, pinned, tagged, rated, shared, deleted.

import { act, call, emit, fail, note, say } from "../api.js";
import { about, aboutMemory, badge, Choice, copy, count, Diff, dim, Empty, facts, fixed, go, Head, html, line, list, number, part, place, Places, problem, Rows, Safe, scope, short, show, time, useCall, useEffect, useKeys, useNames, useOn, usePages, useRef, useState, useStats } from "../ui.js";

const SORTS = [["created", "newest"], ["updated", "last changed"], ["accessed", "last read"], ["count", "most read"], ["importance", "importance"]];
const SEEN = ["access_count", "last_accessed_at"]; // reading is no change to show
const EMPTY = html`<p>There are no memories yet.</p><p>Add one with <code>memctl add "We deploy on Tuesdays"</code>, or let your agent remember: <code>memctl hooks install claude-code</code>.</p>`;
const plain = (value) => (value === null || value === undefined || value === "" ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
const remove = (ids) => act(`Deleted ${count(ids.length, "memory", "memories")}`, async () => [(await call("delete", { ids, reach: "all" })).operation]);
const send = (text, method, fields) => act(text, async () => [(await call(method, { reach: "all", ...fields })).operation]);

export default function Memories({ where }) {
  const id = where.rest[0] || "", [namespace, choose] = useState(""), [type, chooseType] = useState(""), [tier, chooseTier] = useState(""), [sort, order] = useState("created");
  const [marked, mark] = useState(new Set()), [at, move] = useState(-1), [fresh, setFresh] = useState(0), box = useRef(null), stats = useStats();
  const pages = usePages({ ...scope(namespace), type: type ? [type] : [], tier: tier ? [tier] : [], sort, all_states: true });
  const reload = () => { setFresh(0); pages.reload(); };
  useOn("changed", reload);
  useOn("event", (event) => { if (["created", "deleted", "moved", "promoted"].includes(event.kind)) setFresh((many) => many + event.count); });
  const current = at >= 0 ? pages.at(at) : null;
  const turn = (memory) => memory && mark((before) => { const after = new Set(before); if (!after.delete(memory.id)) after.add(memory.id); return after; });
  const step = (by) => { const next = Math.max(0, Math.min((pages.total || 0) - 1, at + by)); move(next); requestAnimationFrame(() => box.current?.querySelector(`[data-at="${next}"]`)?.focus({ preventScroll: true })); };
  const removeMarked = async () => { const ids = marked.size ? [...marked] : current ? [current.id] : id ? [id] : []; if (ids.length && (await remove(ids))) { mark(new Set()); if (ids.includes(id)) go("/memory"); } };
  useKeys({ j: () => step(1), k: () => step(-1), x: () => turn(current), "#": removeMarked, Escape: () => (marked.size ? mark(new Set()) : id && go("/memory")) });
  const row = (index) => {
    const memory = pages.at(index);
    return !memory ? html`<div class="row"><span></span><span class="dim">…</span></div>` : html`<div class=${`row ${marked.has(memory.id) ? "on" : ""} ${memory.id === id ? "open" : ""}`}>
      <input type="checkbox" aria-label=${`Select ${short(memory.id)}`} checked=${marked.has(memory.id)} onChange=${() => turn(memory)} />
      <div><a href=${`#/m/${memory.id}`} data-at=${index} onFocus=${() => move(index)} class="one">${line(memory.content.slice(0, 400)) || "(empty)"}</a>${aboutMemory(memory)}</div></div>`;
  };
  return html`<${Head} title="Memory"><${Places} value=${namespace} change=${choose} /><${Choice} label="Type" value=${type} change=${chooseType} all="all" options=${Object.keys(stats?.by_type || {})} />
      <${Choice} label="Tier" value=${tier} change=${chooseTier} all="all" options=${["L1", "L2", "documents"]} /><${Choice} label="Order" value=${sort} change=${order} options=${SORTS} /><//>
    <div class=${`split ${id ? "one" : "two"}`}><div class="list" ref=${box}>
        ${fresh > 0 && html`<button class="new main" onClick=${reload}>${number(fresh)} changed</button>`}${pages.error && problem(pages.error)}
        ${pages.total === 0 && html`<${Empty}>${namespace || type || tier ? "No memory is like that." : EMPTY}<//>`}
        ${pages.total > 0 && html`<${Rows} total=${pages.total} height=${58} row=${row} label=${`${number(pages.total)} memories`} at=${at} />`}</div>
      <div class="side">${id ? html`<${Safe} key=${id}><${One} id=${id} /><//>` : pages.total > 0 && dim(`${count(pages.total, "memory", "memories")}. Choose one to read it.`)}</div></div>
    ${marked.size > 0 && html`<${Bulk} ids=${[...marked]} clear=${() => mark(new Set())} remove=${removeMarked} />`}`;
}

function Bulk({ ids, clear, remove: removeAll }) {
  const [tag, type] = useState(""), [to, choose] = useState("/"), many = count(ids.length, "memory", "memories"), names = useNames();
  // Memories are shared outward: with the namespaces that enclose others.
  const outer = [...new Set(names.flatMap((name) => name.split("/").map((_, index, parts) => parts.slice(0, index).join("/"))))].map((name) => [name || "/", place(name)]);
  const addTag = async () => {
    const operations = [], word = tag.trim();
    try { for (const id of word ? ids : []) operations.push((await call("tag", { id, tags: [word], reach: "all" })).operation); type(""); } catch (error) { fail(error); }
    if (operations.length) note(`Tagged ${count(operations.length, "memory", "memories")}`, operations);
  };
  return html`<div class="bulk" role="toolbar" aria-label="Selected memories"><b>${number(ids.length)} selected</b><input value=${tag} placeholder="tag" aria-label="Tag for the selected memories" size="10" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && addTag()} /><button onClick=${addTag}>Tag</button>
    <${Choice} label="Share with" value=${to} change=${choose} options=${outer} /><button onClick=${() => send(`Shared ${many} with ${place(to.replace(/^\/$/, ""))}`, "share", { ids, to: to.replace(/^\/$/, "") })}>Share</button><button class="danger" onClick=${removeAll}>Delete (#)</button><button onClick=${clear}>Clear</button></div>`;
}

function One({ id }) {
  const answer = useCall("get", { id, touch: false, reach: "all" }), past = useCall("history", { id, reach: "all" }), memory = answer.value;
  const [draft, edit] = useState(null), field = useRef(null), editing = draft !== null, reload = () => { answer.reload(); past.reload(); };
  useOn("changed", reload);
  useOn("event", (event) => event.id === memory?.id && !editing && reload());
  useEffect(() => { if (editing) field.current?.focus(); }, [editing]);
  const file = memory?.tier === "documents", turn = memory?.tier === "L0", free = memory && !file && !turn;
  const change = (text, fields) => send(text, "update", { id, ...fields });
  const save = async () => { if (draft === memory.content || (await change("Changed the text", { content: draft }))) edit(null); };
  const pin = () => change(memory.pinned ? "Unpinned" : "Pinned", { pinned: !memory.pinned });
  const rate = (useful) => send(useful ? "Rated as useful" : "Rated as not useful", "feedback", { id, useful });
  const [erasing, setErasing] = useState(null), eraseCall = (dry) => call("erase", { ids: [id], reach: "all", dry_run: dry });
  const plan = async (shown) => { try { setErasing(shown === null ? null : await eraseCall(true)); } catch (error) { fail(error); } };
  const erase = async () => { try { await eraseCall(false); say("Erased for good."); emit("changed"); go("/memory"); } catch (error) { fail(error); } };
  useKeys({ e: () => free && edit(memory.content), p: () => free && pin() });
  const history = past.value && html`<${Past} changes=${past.value.changes} />`, all = html`<a href="#/memory">All memories</a>`;
  if (answer.error && !memory) return html`${all}${problem(answer.error)}${history}`;
  return show({ ...answer, error: null }, () => html`${about(all, html`<button class="link mono" title="Copy the id" onClick=${() => { copy(memory.id); say("Copied the id."); }}>${short(memory.id)}</button>`)}${aboutMemory(memory)}
    ${file && dim(html`A part of <code>${memory.path}${memory.start_line ? `:${memory.start_line}–${memory.end_line}` : ""}</code>. Edit the file: what it says is what is remembered.`)}${turn && dim("A turn of a conversation, still in L0: it becomes a memory when it leaves it.")}
    ${!editing ? html`<p class="text body">${memory.content}</p>` : html`<textarea ref=${field} aria-label="Text of the memory" value=${draft} onInput=${(event) => edit(event.target.value)} onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(); else if (event.key === "Escape") edit(null); }}></textarea>
      <div class="acts"><button class="main" onClick=${save}>Save (Ctrl+Enter)</button><button onClick=${() => edit(null)}>Cancel</button></div>`}
    <div class="acts">${free && !editing && html`<button onClick=${() => edit(memory.content)}>Edit (e)</button><button aria-pressed=${memory.pinned} onClick=${pin}>${memory.pinned ? "Unpin" : "Pin"} (p)</button><button onClick=${() => rate(true)}>Useful</button><button onClick=${() => rate(false)}>Not useful</button>`}
      ${!file && html`<button class="danger" onClick=${async () => { if (await remove([memory.id])) go("/memory"); }}>Delete (#)</button><button class="danger" onClick=${() => plan()}>Erase…</button>`}</div>
    ${erasing && html`<div class="panel" role="region" aria-label="Erase">${dim(`This erases ${count(erasing.count, "memory", "memories")}${erasing.derived.length ? ` and ${number(erasing.derived.length)} made of it` : ""} for good, with its history: no undo brings it back.`)}
      ${erasing.copies.length > 0 && dim(`${count(erasing.copies.length, "copy", "copies")} of the database still ${erasing.copies.length === 1 ? "holds" : "hold"} it; memctl erase --copies rewrites them.`)}
      <div class="acts"><button class="danger" onClick=${erase}>Erase for good</button><button onClick=${() => plan(null)}>Keep it</button></div></div>`}
    ${free && html`<${Tags} id=${id} tags=${[memory.metadata.tags || []].flat()} change=${change} />`}
    ${part("About it", facts([["remembered", html`${time(memory.created_at)}, by ${memory.source}`], ["changed", time(memory.updated_at)], ["read", memory.access_count ? html`${count(memory.access_count, "time")}, last ${time(memory.last_accessed_at)}` : "never"], ["importance", fixed(memory.importance, 2)], memory.expires_at && ["leaves search", time(memory.expires_at)], ["summary", memory.summary],
      memory.path && ["file", memory.path], memory.superseded_by && ["replaced by", html`<a href=${`#/m/${memory.superseded_by}`}>${short(memory.superseded_by)}</a>`],
      memory.usefulness && ["feedback", html`${memory.usefulness.useful} useful, ${memory.usefulness.useless} not, cited ${memory.usefulness.cited} times${memory.usefulness.notes.map((text) => html`<br />“${text}”`)}`],
      ...Object.entries(memory.metadata).filter(([name]) => name !== "tags").map(([name, value]) => [name, plain(value)])]))}
    ${memory.contradicts.length > 0 && part("Disagrees with", memory.contradicts.map((other) => html`<${Other} key=${other} id=${other} mine=${id} />`))}
    ${memory.links.length + memory.linked_from.length > 0 && part("Links", list([...memory.links.map((text) => `to ${text}`), ...memory.linked_from.map((text) => `from ${text}`)], (text) => text))}${history}`);
}

function Tags({ id, tags, change }) {
  const [word, type] = useState(""), add = async () => { if (word.trim() && (await send(`Tagged with ${word.trim()}`, "tag", { id, tags: [word.trim()] }))) type(""); };
  return html`<div class="acts">${tags.map((tag) => html`<span class="badge">${plain(tag)} <button class="link" aria-label=${`Remove the tag ${tag}`} onClick=${() => change(`Removed the tag ${tag}`, { metadata: { tags: tags.filter((other) => other !== tag) } })}>×</button></span>`)}
    <input value=${word} placeholder="add a tag" aria-label="Add a tag" size="10" onInput=${(event) => type(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && add()} /></div>`;
}

function Other({ id, mine }) {
  const { value } = useCall("get", { id, touch: false, reach: "all" });
  const dismiss = async () => { try { await call("dismiss_link", { id: mine, other: id, reach: "all" }); emit("changed"); say("They are not linked any more."); } catch (error) { fail(error); } };
  return html`<p><a href=${`#/m/${id}`}>${line(value?.content) || short(id)}</a> <button onClick=${dismiss}>They do not disagree</button></p>`;
}

function Past({ changes }) {
  const change = ([name, [was, is]]) => (name === "content" ? html`<${Diff} before=${was} after=${is} />` : html`<p class="one"><span class="dim">${name}:</span> ${plain(was)} → ${plain(is)}</p>`);
  return part("History", [...changes].reverse().map((one) => html`<div class="panel">${about(time(one.at), badge(one.kind), `operation ${one.operation}`, one.token, one.process)}
    ${one.action === "updated" ? Object.entries(one.changed).filter(([name]) => !SEEN.includes(name)).map(change) : html`<p class="text">${one.action}${one.action === "deleted" && one.changed.content ? `: ${plain(one.changed.content[0])}` : ""}</p>`}</div>`));
}
