"""Write the packed SQuAD dataset of a model with the functions of Megatron-Bridge that its training calls.

``python packed_squad.py SCRIPTS MODEL SEQ_LEN MULTIPLE FOLDER``: SCRIPTS is scripts/performance of Megatron-Bridge's
repository, MODEL the model at Hugging Face that has the tokenizer. Each text is padded to a multiple of MULTIPLE
tokens. The script needs internet access, or the files in HF_HOME.
"""

from __future__ import annotations

import sys

SEED = 5678
"""The seed of the recipe's training, which shuffles the texts before it packs them."""


def main(scripts: str, model: str, seq_len: str, multiple: str, folder: str) -> None:
    """Download SQuAD, divide it into training, validation and test, and pack it into sequences of this length."""
    sys.path.insert(0, scripts)
    import numpy as np
    from megatron.bridge.data.utils import hf_train_valid_test_datasets_provider
    from megatron.bridge.training.tokenizers.config import TokenizerConfig
    from megatron.bridge.training.tokenizers.tokenizer import build_tokenizer
    from utils.datasets import create_squad_dataset_config

    tokenizer = build_tokenizer(TokenizerConfig(tokenizer_type="HuggingFaceTokenizer", tokenizer_model=model))
    config = create_squad_dataset_config(
        dataset_root=folder, seq_length=int(seq_len), packed=True, pad_seq_to_mult=int(multiple)
    )
    config.dataset_kwargs = {"pad_to_max_length": True}
    np.random.seed(SEED)
    hf_train_valid_test_datasets_provider([0, 0, 0], config, tokenizer)


if __name__ == "__main__":
    main(*sys.argv[1:])
