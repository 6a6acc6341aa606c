"""How a loopback server speaks the embeddings API: the vectors of the word embedder, and behaviours to spoil them."""

import json
from typing import Any

from model_server import Behaviour
from workbench import WordEmbedder

WORDS = WordEmbedder()


def replies(data: Any) -> Behaviour:
    return lambda request: request.answer(200, json.dumps(data).encode())


def embeds(request: Any) -> None:
    """Answer as a good server does: not in order, not of length 1."""
    items = [
        {"object": "embedding", "index": index, "embedding": (3.0 * WORDS.embed_query(text)).tolist()}
        for index, text in enumerate(request.body["input"])
    ]
    replies({"object": "list", "data": items[::-1], "usage": {"prompt_tokens": 5}})(request)


def of_length(length: int) -> Behaviour:
    def answer(request: Any) -> None:
        items = [{"index": index, "embedding": [1.0] * length} for index, _ in enumerate(request.body["input"])]
        replies({"data": items})(request)

    return answer


def refuses(word: str) -> Behaviour:
    """Refuse a request with a text that has a word."""

    def answer(request: Any) -> None:
        if any(word in text for text in request.body["input"]):
            request.answer(400, b"too long")
        else:
            embeds(request)

    return answer
