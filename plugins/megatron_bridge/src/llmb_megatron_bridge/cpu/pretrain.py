"""One rank of Megatron-Bridge's ``pretrain()`` on a CPU: a small Llama-shaped model on mock data.

Runs in the environment of environments/cpu.txt, with the rank environment that every scheduler gives.
"""

from __future__ import annotations

import argparse
from typing import Any

import cuda_on_cpu

cuda_on_cpu.install()

import torch  # noqa: E402  # after the above, as are the others
import yaml  # noqa: E402
from megatron.bridge.models.llama.llama_provider import Llama3ModelProvider  # noqa: E402
from megatron.bridge.training import config as bridge  # noqa: E402
from megatron.bridge.training.gpt_step import forward_step  # noqa: E402
from megatron.bridge.training.pretrain import pretrain  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402

NUMBERS = (
    *("layers", "hidden", "ffn", "heads", "query-groups", "vocab", "seq-len"),
    *("tp", "micro-batch-size", "global-batch-size", "steps"),
)


def main() -> None:
    """Train as the arguments say; further ones are ``table.key=value`` of Megatron-Bridge's configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in NUMBERS:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("overrides", nargs="*")
    asked = parser.parse_args()
    config = _config(asked)
    for override in asked.overrides:
        _override(config, override)
    pretrain(config=config, forward_step_func=forward_step)


def _config(asked: argparse.Namespace) -> Any:
    return bridge.ConfigContainer(
        model=_model(asked),
        train=bridge.TrainingConfig(
            train_iters=asked.steps,
            eval_iters=0,
            eval_interval=asked.steps + 1,
            global_batch_size=asked.global_batch_size,
            micro_batch_size=asked.micro_batch_size,
        ),
        optimizer=bridge.OptimizerConfig(optimizer="adam", lr=1e-3, min_lr=1e-4, use_distributed_optimizer=False),
        scheduler=bridge.SchedulerConfig(
            lr_decay_style="constant",
            lr_decay_iters=asked.steps,
            start_weight_decay=0.01,
            end_weight_decay=0.01,
            weight_decay_incr_style="constant",
        ),
        dataset=bridge.MockGPTDatasetConfig(
            seq_length=asked.seq_len,
            random_seed=1234,
            reset_attention_mask=False,
            reset_position_ids=False,
            eod_mask_loss=False,
            num_workers=0,
            persistent_workers=False,
            pin_memory=False,
            dataloader_type="single",
        ),
        ddp=bridge.DistributedDataParallelConfig(
            use_distributed_optimizer=False, overlap_grad_reduce=False, overlap_param_gather=False
        ),
        dist=bridge.DistributedInitConfig(distributed_backend="gloo"),
        tokenizer=bridge.TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=asked.vocab),
        logger=bridge.LoggerConfig(log_interval=1, log_throughput=True),
        checkpoint=bridge.CheckpointConfig(save=None, load=None),
    )


def _model(asked: argparse.Namespace) -> Any:
    """Layers of Megatron-Core's own, in 32 bits, without what needs a GPU's kernels."""
    return Llama3ModelProvider(
        num_layers=asked.layers,
        hidden_size=asked.hidden,
        ffn_hidden_size=asked.ffn,
        num_attention_heads=asked.heads,
        num_query_groups=asked.query_groups,
        vocab_size=asked.vocab,
        seq_length=asked.seq_len,
        tensor_model_parallel_size=asked.tp,
        transformer_layer_spec=lambda _: get_gpt_layer_local_spec(normalization="RMSNorm"),
        params_dtype=torch.float32,
        pipeline_dtype=torch.float32,
        autocast_dtype=torch.float32,
        bf16=False,
        use_cpu_initialization=True,
        **dict.fromkeys(
            (
                *("gradient_accumulation_fusion", "bias_activation_fusion", "bias_dropout_fusion"),
                *("masked_softmax_fusion", "apply_rope_fusion", "cross_entropy_loss_fusion", "persist_layer_norm"),
            ),
            False,
        ),
    )


def _override(config: Any, text: str) -> None:
    path, _, value = text.partition("=")
    *above, last = path.split(".")
    for name in above:
        config = getattr(config, name, None)
    if not hasattr(config, last):
        raise SystemExit(f"{path} is not in Megatron-Bridge's configuration")
    setattr(config, last, yaml.safe_load(value))


if __name__ == "__main__":
    main()
