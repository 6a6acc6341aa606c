// The choice of a project.

import { go, useAnswer } from "./hooks.js";
import { PERSON, readProjects } from "./latest.js";
import { choice, html } from "./parts.js";
import { place } from "./text.js";

const SHOWN = 8;

export const addressOf = (namespace) => `/project?${new URLSearchParams({ ns: namespace })}`;

export const useProjects = () => useAnswer(readProjects, [], { kinds: ["created", "observed"] });

export function Projects({ names, chosen }) {
  const first = names.slice(0, SHOWN);
  const shown = [...new Set([...first, chosen, PERSON])];
  const rest = names.filter((name) => !shown.includes(name));
  const entry = (name) =>
    html`<a href=${`#${addressOf(name)}`} aria-current=${name === chosen ? "true" : undefined}>${name || "/ (you)"}</a>`;
  const more = choice(
    "Others",
    "",
    (name) => go(addressOf(name)),
    rest.map((name) => [name, place(name)]),
    "–",
  );
  return html`<nav class="projects" aria-label="Projects">${shown.map(entry)}${rest.length > 0 && more}</nav>`;
}
