"""Training script for one rank on a CPU: Megatron-Bridge's ``pretrain()`` with a small model on mock data.

The model has the shape of Llama, or of a mixture of experts with Llama's attention. The script needs the environment of
environments/cpu.txt and the rank variables that every scheduler sets.
"""

from __future__ import annotations

import argparse
from typing import Any

import cuda_on_cpu

cuda_on_cpu.install()

import torch  # noqa: E402  # these imports must follow install()
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
EXPERTS = ("experts", "top-k", "expert-ffn", "ep")


def main() -> None:
    """Train with the arguments of the command line, including overrides ``table.key=value`` of the configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in NUMBERS:
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in EXPERTS:
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("overrides", nargs="*")
    arguments = parser.parse_args()
    config = _config(arguments)
    for override in arguments.overrides:
        _override(config, override)
    pretrain(config=config, forward_step_func=forward_step)


def _config(arguments: argparse.Namespace) -> Any:
    return bridge.ConfigContainer(
        model=_model(arguments),
        train=bridge.TrainingConfig(
            train_iters=arguments.steps,
            eval_iters=0,
            eval_interval=arguments.steps + 1,
            global_batch_size=arguments.global_batch_size,
            micro_batch_size=arguments.micro_batch_size,
        ),
        optimizer=bridge.OptimizerConfig(optimizer="adam", lr=1e-3, min_lr=1e-4, use_distributed_optimizer=False),
        scheduler=bridge.SchedulerConfig(
            lr_decay_style="constant",
            lr_decay_iters=arguments.steps,
            start_weight_decay=0.01,
            end_weight_decay=0.01,
            weight_decay_incr_style="constant",
        ),
        dataset=bridge.MockGPTDatasetConfig(
            seq_length=arguments.seq_len,
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
        tokenizer=bridge.TokenizerConfig(tokenizer_type="NullTokenizer", vocab_size=arguments.vocab),
        logger=bridge.LoggerConfig(log_interval=1, log_throughput=True),
        checkpoint=bridge.CheckpointConfig(save=None, load=None),
    )


def _model(arguments: argparse.Namespace) -> Any:
    """Return a model with Megatron-Core's local layers in 32 bits, without features that need GPU kernels."""
    return Llama3ModelProvider(
        num_layers=arguments.layers,
        hidden_size=arguments.hidden,
        ffn_hidden_size=arguments.ffn,
        num_attention_heads=arguments.heads,
        num_query_groups=arguments.query_groups,
        vocab_size=arguments.vocab,
        seq_length=arguments.seq_len,
        tensor_model_parallel_size=arguments.tp,
        transformer_layer_spec=lambda config: get_gpt_layer_local_spec(config.num_moe_experts, normalization="RMSNorm"),
        **(_experts(arguments) if arguments.experts > 1 else {}),
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


def _experts(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of experts. Gloo, which connects CPUs, has no all-to-all for parts of different sizes."""
    return {
        "num_moe_experts": arguments.experts,
        "moe_router_topk": arguments.top_k,
        "moe_ffn_hidden_size": arguments.expert_ffn,
        "expert_model_parallel_size": arguments.ep,
        "moe_token_dispatcher_type": "allgather",
        "moe_grouped_gemm": False,
        "moe_permute_fusion": False,
    }


def _override(config: Any, text: str) -> None:
    """Set one key of the configuration from ``table.key=value``. Exit with an error if the key does not exist."""
    path, _, value = text.partition("=")
    *above, last = path.split(".")
    for name in above:
        config = getattr(config, name, None)
    if not hasattr(config, last):
        raise SystemExit(f"unknown key {path} in Megatron-Bridge's configuration")
    setattr(config, last, yaml.safe_load(value))


if __name__ == "__main__":
    main()
