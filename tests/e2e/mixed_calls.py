"""One process of test_many_clients: mixed calls in a namespace of its own, each reply compared with a model of it.

python mixed_calls.py NAMESPACE SEED CALLS prints how many memories it has at the end.
"""

import random
import sys
from typing import Any

from memoryd.client import Client

WORDS = "amber birch cedar delta ember fjord grove heath inlet jetty knoll larch marsh north ocean pearl quartz ridge"


class Agent:
    """Does random calls and knows what each must return: id → (content, tags) of what is in its namespace."""

    def __init__(self, memory: Client, seed: int) -> None:
        self.memory, self.random = memory, random.Random(seed)
        self.known: dict[str, tuple[str, list[str]]] = {}
        self.deleted: list[tuple[int, dict[str, tuple[str, list[str]]]]] = []
        self.number = 0
        self.works = {  # how often, out of a hundred
            self.add: 20,
            self.add_many: 3,
            self.add_again: 5,
            self.get: 20,
            self.search: 20,
            self.update: 10,
            self.tag: 10,
            self.delete: 6,
            self.undo: 3,
            self.list: 3,
        }

    def text(self) -> str:
        self.number += 1
        return f"{self.memory.namespace} number{self.number} " + " ".join(self.random.sample(WORDS.split(), 5))

    def any(self) -> str:
        return self.random.choice(list(self.known))

    def add(self) -> None:
        text = self.text()
        added = self.memory.add(text, type="note", dedup=False)
        assert added.outcome == "created"
        assert added.id not in self.known
        self.known[added.id] = (text, [])

    def add_many(self) -> None:
        texts = [self.text() for _ in range(3)]
        added = self.memory.add_many([{"content": text, "type": "note"} for text in texts], dedup=False)
        assert added.created == 3
        self.known.update({result.id: (text, []) for result, text in zip(added, texts, strict=True)})

    def add_again(self) -> None:
        id = self.any()
        merged = self.memory.add(self.known[id][0].upper(), type="note")
        assert (merged.outcome, merged.id) == ("merged", id)
        self.known[id] = (self.known[id][0].upper(), self.known[id][1])

    def get(self) -> None:
        id = self.any()
        self.check(self.memory.get(id))

    def search(self) -> None:
        id = self.any()
        word = next(word for word in self.known[id][0].split() if word.lower().startswith("number"))
        hits = list(self.memory.search(word, reach="exact", limit=5))
        assert id in [hit.id for hit in hits], f"{word} not found"
        for hit in hits:
            self.check(hit)

    def update(self) -> None:
        id, text = self.any(), self.text()
        self.known[id] = (text, self.known[id][1])
        self.check(self.memory.update(id, content=text).memory)

    def tag(self) -> None:
        id, word = self.any(), self.random.choice(WORDS.split())
        text, tags = self.known[id]
        self.known[id] = (text, tags if word in tags else [*tags, word])
        self.check(self.memory.tag(id, word).memory)

    def delete(self) -> None:
        ids = {self.any() for _ in range(2)}
        deleted = self.memory.delete(*ids)
        assert set(deleted.ids) == ids
        self.deleted.append((deleted.operation, {id: self.known.pop(id) for id in ids}))

    def undo(self) -> None:
        if not self.deleted:
            return self.list()
        operation, back = self.deleted.pop()
        assert set(self.memory.undo(operation).ids) == set(back)
        return self.known.update(back)

    def list(self) -> None:
        page = self.memory.list(reach="exact", limit=1000)
        assert page.total == len(self.known)
        assert {found.id for found in page} == set(self.known)
        for found in page:
            self.check(found)

    def check(self, found: Any) -> None:
        text, tags = self.known[found.id]
        assert (found.content, found.metadata.get("tags", []), found.namespace) == (text, tags, self.memory.namespace)


def main(namespace: str, seed: int, calls: int) -> None:
    with Client(namespace, autostart=False, timeout_s=90) as memory:
        agent = Agent(memory, seed)
        agent.add_many()
        for _ in range(calls - 2):
            if len(agent.known) < 5:
                agent.add()
                continue
            [work] = agent.random.choices(list(agent.works), list(agent.works.values()))
            work()
        agent.list()
        print(len(agent.known))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
