// What memories are about, in words of theirs: a word names the memories that have it.

const MOST = 8; // subjects that are named
const COMMON = 0.4; // a word in more of the texts names none of them
const WORDS = /\p{L}{4,}/gu;
const EMPTY = new Set(
  (
    "about above after again also always because been before being below between both cannot could does doing done down " +
    "during each else every everything from have having here into itself just keep kept like made make many more most " +
    "must need never none nothing only other over same should since some such than that their them then there these " +
    "they thing this those through under until upon used uses using very want well were what when where which while " +
    "with within without would your"
  ).split(" "),
);

function listWords(text) {
  const words = (text.toLowerCase().match(WORDS) || []).filter((word) => !EMPTY.has(word));
  return new Set(words.map((word) => word.replace(/(?<=[^s])s$/, ""))); // of a word and its plural one
}

// The word that most have in common; of equal ones that which is said first.
function findShared(entries, most) {
  const counts = new Map();
  for (const { words } of entries) for (const word of words) counts.set(word, (counts.get(word) || 0) + 1);
  const shared = [...counts].filter(([, count]) => count > 1 && count <= most);
  return shared.reduce((best, one) => (one[1] > best[1] ? one : best), ["", 0])[0];
}

// Pairs of a subject and its memories, the largest first; those that share no word are the last one.
export function sortBySubject(memories) {
  let left = memories.map((memory) => ({ memory, words: listWords(memory.content) }));
  const groups = [];
  while (groups.length < MOST) {
    const name = findShared(left, Math.max(2, COMMON * memories.length));
    if (!name) break;
    const own = left.filter(({ words }) => words.has(name)).map(({ memory }) => memory);
    groups.push([name[0].toUpperCase() + name.slice(1), own]);
    left = left.filter(({ words }) => !words.has(name));
  }
  groups.sort((a, b) => b[1].length - a[1].length);
  return left.length ? [...groups, ["Others", left.map(({ memory }) => memory)]] : groups;
}
