"""The other side of bench_chroma: runs in Chroma's own virtual environment, with Chroma and numpy only.

chroma_side.py FOLDER: reads vectors.npy and questions.npy there, loads them into a persistent collection, prints one
JSON line about it; then for each line on stdin asks the given share of the questions, with so many candidates (`ef`),
and prints their times as JSON.
"""

import json
import sys
import time
from pathlib import Path

import chromadb
import numpy as np

_BATCH = 1000
_SINGLE = 100


def main() -> None:
    folder = Path(sys.argv[1])
    vectors, questions = np.load(folder / "vectors.npy"), np.load(folder / "questions.npy")
    texts = (folder / "texts.txt").read_text().split("\n")
    client = chromadb.PersistentClient(path=str(folder / "chroma"))
    collection = client.create_collection("memories", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    began = time.perf_counter()
    for start in range(0, len(vectors) - _SINGLE, _BATCH):
        numbers = range(start, min(start + _BATCH, len(vectors) - _SINGLE))
        chosen = slice(numbers.start, numbers.stop)
        collection.add(ids=[str(n) for n in numbers], embeddings=vectors[chosen], documents=texts[chosen])
    batched_s = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(len(vectors) - _SINGLE, len(vectors)):
        one = slice(number, number + 1)
        collection.add(ids=[str(number)], embeddings=vectors[one], documents=texts[one])
    single_s = time.perf_counter() - began
    say(version=chromadb.__version__, batched=(len(vectors) - _SINGLE) / batched_s, single=_SINGLE / single_s)
    candidates = 0
    for line in sys.stdin:
        first, last, wanted = map(int, line.split())
        if wanted != candidates:
            collection.modify(configuration={"hnsw": {"ef_search": wanted}})
            del collection, client
            chromadb.api.client.SharedSystemClient.clear_system_cache()  # what is open keeps its own
            client = chromadb.PersistentClient(path=str(folder / "chroma"))
            collection, candidates = client.get_collection("memories", embedding_function=None), wanted
        times, found = [], []
        for question in questions[first:last]:
            began = time.perf_counter()
            answer = collection.query(query_embeddings=[question], n_results=10)
            times.append((time.perf_counter() - began) * 1000)
            found.append([int(number) for number in answer["ids"][0]])
        say(times=times, found=found)


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
