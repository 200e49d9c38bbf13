"""Tokens of services that serve models and of tools around them, as rows for `tokens`."""

from journeyman.redaction.token_row import Token

_MIX = "aB3dE6gH9k"
_HEX = "0a1b2c3d4e5f6789"

MODEL_TOKENS: tuple[Token, ...] = (
    Token("anthropic_key", "sk-ant-", r"sk-ant-[\w-]{8,}", f"sk-ant-api03-{_MIX * 9}", "Anthropic"),
    Token("openrouter_key", "sk-or-", r"sk-or-[\w-]{16,}", f"sk-or-v1-{_HEX * 4}", "OpenRouter"),
    Token("langfuse_key", "sk-lf-", r"sk-lf-[\w-]{16,}", f"sk-lf-{_HEX * 2}", "Langfuse"),
    Token(
        "openai_key",
        "sk-",
        r"sk-(?:proj|svcacct|admin|None)-[\w-]{8,}",
        f"sk-proj-{_MIX * 8}",
        "OpenAI's keys of a project, a service account or an administrator",
    ),
    Token(
        "openai_key",
        "sk-",
        r"sk-(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{16,}",
        f"sk-{_MIX * 2}T3BlbkFJ{_MIX * 2}",
        "OpenAI's older keys; DeepSeek, Moonshot and others took over the form",
    ),
    Token("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{16,}", f"hf_{_MIX * 3}abcd", "Hugging Face"),
    Token(
        "huggingface_token", "api_org_", r"api_org_[A-Za-z0-9]{16,}", f"api_org_{_MIX * 3}", "older"
    ),
    Token("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{16,}", f"gsk_{_MIX * 5}", "Groq"),
    Token("xai_key", "xai-", r"xai-[A-Za-z0-9]{24,}", f"xai-{_MIX * 8}", "xAI"),
    Token("perplexity_key", "pplx-", r"pplx-[A-Za-z0-9]{16,}", f"pplx-{_MIX * 5}", "Perplexity"),
    Token("replicate_token", "r8_", r"r8_[A-Za-z0-9]{16,}", f"r8_{_MIX * 4}", "Replicate"),
    Token("nvidia_key", "nvapi-", r"nvapi-[\w-]{16,}", f"nvapi-{_MIX * 6}", "NVIDIA"),
    Token("together_key", "tgp_v1_", r"tgp_v1_[\w-]{16,}", f"tgp_v1_{_MIX * 4}", "Together"),
    Token("fireworks_key", "fw_", r"fw_[A-Za-z0-9]{20,}", f"fw_{_MIX * 3}", "Fireworks"),
    Token("cerebras_key", "csk-", r"csk-[a-z0-9]{24,}", f"csk-{_HEX * 3}", "Cerebras"),
    Token("elevenlabs_key", "sk_", r"sk_[0-9a-f]{40,}", f"sk_{_HEX * 3}", "ElevenLabs"),
    Token("pinecone_key", "pcsk_", r"pcsk_\w{16,}", f"pcsk_{_MIX * 6}", "Pinecone"),
    Token("tavily_key", "tvly-", r"tvly-[\w-]{16,}", f"tvly-dev-{_MIX * 3}", "Tavily"),
    Token("firecrawl_key", "fc-", r"fc-[0-9a-f]{32}", f"fc-{_HEX * 2}", "Firecrawl"),
    Token(
        "langsmith_key",
        "lsv2_",
        r"lsv2_(?:pt|sk)_[0-9a-f_]{16,}",
        f"lsv2_pt_{_HEX * 2}_{_HEX[:10]}",
        "LangSmith",
    ),
    Token("wandb_key", "wandb_v1_", r"wandb_v1_\w{20,}", f"wandb_v1_{_MIX * 6}", "W&B"),
)
