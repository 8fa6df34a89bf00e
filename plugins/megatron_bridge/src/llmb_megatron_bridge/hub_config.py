"""The config.json of a Hugging Face model in a local cache, so that a run needs neither a token nor internet access."""

import json
from typing import Any

from llmb import Run, with_paths

SIZES = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden",
    "intermediate_size": "ffn",
    "num_attention_heads": "heads",
    "num_key_value_heads": "query_groups",
    "vocab_size": "vocab",
}
"""Keys of config.json for each size of a model."""

REVISION = "published"
"""The name of the snapshot. The hub uses commits; any name is valid in a cache."""


def hub_files(run: Run[Any]) -> dict[str, str]:
    """Return the files of a cache with the model's config.json, by path; none if the recipe reads the hub itself."""
    config = run.settings.get("hub_config")
    if not config:
        return {}
    folder = f"{run.paths.run}/huggingface/hub/models--{run.settings['hub_model'].replace('/', '--')}"
    sizes = {key: getattr(run.published_model, name) for key, name in SIZES.items()}
    text = json.dumps({**with_paths(config, run.paths), **sizes}, separators=(",\n", ": ")) + "\n"
    return {f"{folder}/refs/main": REVISION, f"{folder}/snapshots/{REVISION}/config.json": text}
