"""The context windows of model families that the price data leaves out: open models above all,
which are served under many names. A server can give a model less room than it was made for, so a
row is the last word only where nobody else knows.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Window(NamedTuple):
    """A family of models, by how their names begin in lower case and with hyphens."""

    id: str
    pattern: str
    tokens: int
    example: str


WINDOWS: tuple[Window, ...] = (
    Window("codellama", r"code-?llama", 16_384, "codellama:13b"),
    Window("command_a", r"command-a", 262_144, "command-a-03-2025"),
    Window("command_r", r"command-r", 131_072, "command-r-plus:104b"),
    Window("deepseek_coder", r"deepseek-coder", 16_384, "deepseek-coder:6.7b"),
    Window("deepseek_coder_v2", r"deepseek-coder-v2", 131_072, "deepseek-coder-v2:16b"),
    Window("deepseek_r1", r"deepseek-r1", 131_072, "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
    Window("deepseek_v3", r"deepseek-v3", 131_072, "deepseek-ai/DeepSeek-V3"),
    Window("devstral", r"devstral", 131_072, "devstral:24b"),
    Window("gemini", r"gemini-(?:1\.5-flash|2|3|flash|pro)", 1_048_576, "gemini-2.5-pro"),
    Window("gemma", r"(?:code)?gemma", 8_192, "gemma2:9b"),
    Window("gemma_3", r"gemma-?3", 131_072, "google/gemma-3-27b-it"),
    Window("gemma_3_1b", r"gemma-?3(?:-|:)1b", 32_768, "gemma3:1b"),
    Window("glm_4", r"glm-4", 131_072, "THUDM/GLM-4-32B-0414"),
    Window("glm_4_6", r"glm-4\.[6-9]", 202_752, "zai-org/GLM-4.6"),
    Window("gpt_oss", r"gpt-oss", 131_072, "gpt-oss:20b"),
    Window("granite", r"granite-?[34]", 131_072, "ibm-granite/granite-3.3-8b-instruct"),
    Window("hermes_2", r"(?:nous-)?hermes-?2", 8_192, "NousResearch/Hermes-2-Pro-Llama-3-8B"),
    Window("hermes_3", r"hermes-?[34]", 131_072, "NousResearch/Hermes-4-70B"),
    Window("kimi_k2", r"kimi-k2", 131_072, "moonshotai/Kimi-K2-Instruct"),
    Window("kimi_k2_0905", r"kimi-k2(?:-instruct)?-0905", 262_144, "Kimi-K2-Instruct-0905"),
    Window("llama_2", r"(?:meta-)?llama-?2", 4_096, "llama2:7b"),
    Window("llama_3", r"(?:meta-)?llama-?3", 8_192, "meta-llama/Meta-Llama-3-8B-Instruct"),
    Window("llama_3_1", r"(?:meta-)?llama-?3\.[123]", 131_072, "llama3.1:8b"),
    Window("llama_4", r"(?:meta-)?llama-?4", 1_048_576, "meta-llama/Llama-4-Maverick-17B-128E"),
    Window("magistral", r"magistral", 40_960, "magistral:24b"),
    Window("ministral", r"ministral", 131_072, "ministral-8b-latest"),
    Window("mistral", r"(?:open-)?mi(?:s|x)tral", 32_768, "mistral:7b"),
    Window("mistral_large", r"mistral-large", 131_072, "mistral-large-latest"),
    Window("mistral_medium", r"mistral-medium", 131_072, "mistral-medium-latest"),
    Window("mistral_nemo", r"(?:open-)?mistral-nemo", 131_072, "mistral-nemo:12b"),
    Window("mistral_small", r"mistral-small-?3\.", 131_072, "mistral-small3.1:24b"),
    Window("olmo_2", r"olmo-?2", 4_096, "olmo2:13b"),
    Window("phi_3", r"phi-?3", 4_096, "phi3:mini"),
    Window("phi_3_128k", r"phi-?3(?:\.5|-\w+-128k)", 131_072, "microsoft/Phi-3-mini-128k-instruct"),
    Window("phi_4", r"phi-?4", 16_384, "phi4:14b"),
    Window("phi_4_mini", r"phi-?4-mini", 131_072, "phi4-mini:3.8b"),
    Window("qwen_2", r"qwen-?2", 32_768, "Qwen/Qwen2.5-7B-Instruct"),
    Window("qwen_3", r"qwen-?3", 32_768, "qwen3:8b"),
    Window("qwen_3_2507", r"qwen-?3-\w+(?:-a\w+)?-(?:\w+-)?2507", 262_144, "Qwen3-4B-2507"),
    Window("qwen_3_coder", r"qwen-?3-(?:coder|next)", 262_144, "qwen3-coder:30b"),
    Window("qwq", r"qwq", 32_768, "qwq:32b"),
    Window("smollm_2", r"smollm-?2", 8_192, "SmolLM2-135M-Instruct.Q4_1.gguf"),
    Window("smollm_3", r"smollm-?3", 65_536, "HuggingFaceTB/SmolLM3-3B"),
)


def find_known_window(name: str, rows: Iterable[Window] = WINDOWS) -> int | None:
    """The window of the family to which a model belongs by its name: of all rows that fit, the one
    that fits the most of it.
    """
    plain = re.sub(r"[\s_]+", "-", name.lower().rpartition("/")[2])
    best, longest = None, 0
    for row in rows:
        found = re.match(row.pattern, plain)
        if found and found.end() > longest:
            best, longest = row, found.end()
    return best.tokens if best else None
