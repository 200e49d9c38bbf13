"""The words in which servers refuse a request: that the conversation is too long, or that a
parameter is not to their taste. Every row is a test case; what follows from a row, `remote` knows.
"""

import re
from collections.abc import Collection
from typing import NamedTuple


class Wording(NamedTuple):
    """Words of a refusal that mean one thing, whoever says them."""

    id: str
    pattern: str
    example: str
    reason: str


CONTEXT_FULL: tuple[Wording, ...] = (
    Wording(
        "context.code",
        r"context_length_exceeded|exceed_context_size|context_window_exceeded",
        '{"error": {"code": "context_length_exceeded", "message": "…"}}',
        "the code that OpenAI, Azure and llama.cpp give beside the sentence",
    ),
    Wording(
        "context.maximum",
        r"maximum (?:allowed )?(?:context|prompt|input|sequence)[ _](?:length|size|window|tokens)",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "OpenAI, vLLM, DeepSeek, xAI, SGLang, OpenRouter",
    ),
    Wording(
        "context.exceeds",
        r"exceed(?:s|ed|ing)? (?:\w+ ){0,3}(?:context|token|input|prompt)\w*"
        r"[ _](?:size|length|window|limit|count|tokens)",
        "the request exceeds the available context size, try increasing it",
        "llama.cpp, LM Studio, Bedrock; 'exceeds the context window of this model'",
    ),
    Wording(
        "context.too_long",
        r"(?:prompt|input|request|messages?|conversation|context)(?: \w+){0,2}"
        r" (?:is|are|was|were) too (?:long|large)\b",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "Anthropic, Bedrock, Mistral, Ollama",
    ),
    Wording(
        "context.too_many_tokens",
        r"too many (?:input |prompt )?tokens\b(?! per)",
        "too many tokens: size limit exceeded by 1200 tokens",
        "Cohere, Mistral and small servers",
    ),
    Wording(
        "context.token_count",
        r"(?:token count|number of (?:input )?tokens)[^.]{0,60} (?:exceeds|is greater than)",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "Gemini, watsonx",
    ),
    Wording(
        "context.must_be_fewer",
        r"inputs` tokens \+ `max_new_tokens` must be|reduce the length of the (?:messages|prompt"
        r"|input)|longer than the (?:model's )?context",
        "Please reduce the length of the messages or completion.",
        "Text Generation Inference, Groq, TabbyAPI",
    ),
)

NO_CREDIT: tuple[Wording, ...] = (
    Wording(
        "credit.quota",
        r"insufficient_quota|insufficient (?:balance|credits|funds)|credit balance is too low",
        '{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}',
        "OpenAI answers 429, but no waiting helps; the sentence alone can mean a busy minute",
    ),
)


class Adjustment(NamedTuple):
    """A parameter that some servers refuse by name: it is left out, or sent under a new name."""

    id: str
    pattern: str
    parameter: str
    instead: str
    example: str
    reason: str


ADJUSTMENTS: tuple[Adjustment, ...] = (
    Adjustment(
        "adjust.stream_options",
        r"stream_options|include_usage",
        "stream_options",
        "",
        "Unrecognized request argument supplied: stream_options",
        "older servers stream but do not count while they do",
    ),
    Adjustment(
        "adjust.stream",
        r"\bstream(?:ing)?\b",
        "stream",
        "",
        "Unsupported value: 'stream' does not support true with this model.",
        "some models answer only as a whole",
    ),
    Adjustment(
        "adjust.max_tokens",
        r"max_completion_tokens",
        "max_tokens",
        "max_completion_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "reasoning models of OpenAI know the limit by its newer name",
    ),
    Adjustment(
        "adjust.temperature",
        r"\btemperature\b",
        "temperature",
        "",
        "Unsupported value: 'temperature' does not support 0.2 with this model.",
        "reasoning models choose for themselves",
    ),
)


def says_one_of(rows: tuple[Wording, ...], text: str) -> bool:
    """Whether a refusal uses the words of one of these rows."""
    return any(re.search(row.pattern, text, re.IGNORECASE) for row in rows)


def find_adjustment(text: str, sent: Collection[str]) -> Adjustment | None:
    """The first parameter that was sent and that a refusal names."""
    for row in ADJUSTMENTS:
        if row.parameter in sent and re.search(row.pattern, text, re.IGNORECASE):
            return row
    return None
