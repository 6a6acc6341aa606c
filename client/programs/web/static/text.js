// Texts for numbers, sizes, names and values, as memctl writes them.

export const number = (value) => (value ?? 0).toLocaleString("en");
export const count = (many, one, more = `${one}s`) => `${number(many)} ${many === 1 ? one : more}`;
export const memories = (many) => count(many, "memory", "memories");
export const fixed = (value, digits = 3) => value?.toFixed(digits) ?? "–";

export const place = (namespace) => namespace || "/";
export const short = (id) => (id || "").slice(0, 8);
export const line = (text) =>
  String(text ?? "")
    .replace(/\s+/g, " ")
    .trim();
export const words = (name) => name.replaceAll("_", " ");
export const session = (name) => name && `session ${line(name).slice(0, 24)}`;

// What is counted: `2 moved, 1 kept`.
export function counts(numbers) {
  const counted = Object.entries(numbers).filter(([, many]) => many);
  return counted.map(([name, many]) => `${number(many)} ${words(name)}`).join(", ");
}

// A value of metadata or a note of a stage.
export function plain(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : fixed(value);
  if (Array.isArray(value)) return value.map(plain).join(" ") || "none";
  if (typeof value === "object")
    return Object.entries(value)
      .map(([name, item]) => `${name} ${plain(item)}`)
      .join(" ");
  return String(value);
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const exponent = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** exponent;
  return `${value.toFixed(value >= 100 ? 0 : 1)} ${["B", "kB", "MB", "GB"][exponent]}`;
}

export function duration(seconds) {
  for (const [unit, length] of [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
  ]) {
    if (seconds >= length) return `${(seconds / length).toFixed(1)} ${unit}`;
  }
  return `${seconds.toFixed(0)} s`;
}

export const ms = (value) => `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ms`;

export function startOfDay(at, days = 0) {
  const date = new Date(at);
  date.setHours(0, 0, 0, 0);
  return date.setDate(date.getDate() + days);
}
