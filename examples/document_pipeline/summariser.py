"""Stands in for a language model: deterministic, local, and priced by the token."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z][a-z]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SHORTEST_KEYWORD = 5


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a call gave, with its tokens (words, here) and its price in dollars."""

    model: str
    prompt: str
    text: str
    input_tokens: int
    output_tokens: int
    cost: float


def keywords(text: str) -> Answer:
    """The five most frequent longer words."""
    words = Counter(word.lower() for word in _WORD.findall(text) if len(word) >= _SHORTEST_KEYWORD)
    ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return _answer("keyword-1", text, ", ".join(word for word, _ in ranked[:5]), 0.5)


def summary(text: str) -> Answer:
    """The sentence that holds the most of the text's frequent words."""
    frequent = Counter(word.lower() for word in _WORD.findall(text))
    sentences = _SENTENCE.split(" ".join(text.split()))

    def weight(sentence: str) -> float:
        words = _WORD.findall(sentence)
        return sum(frequent[word.lower()] for word in words) / (len(words) + 10)

    return _answer("extractive-1", text, max(sentences, key=weight)[:160], 2.0)


def _answer(model: str, prompt: str, text: str, dollars_per_million: float) -> Answer:
    tokens = len(prompt.split())
    return Answer(
        model=model,
        prompt=prompt[:200],
        text=text,
        input_tokens=tokens,
        output_tokens=len(text.split()),
        cost=round(tokens * dollars_per_million / 1e6, 9),
    )
