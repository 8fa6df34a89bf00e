"""Runs in the text format of Prometheus, for the textfile collector of its node exporter."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from llmb.analysis.metrics import Metrics
from llmb.records.result import RunResult
from llmb.values.texts.printable import printable_line
from llmb.values.types.check_arguments import check_arguments

LABELS = ("run_id", "recipe", "gpu_type", "dtype", "gpus", "variant")
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def _metric(name: str) -> Callable[[RunResult], float | None]:
    return lambda run: getattr(_metrics(run), name, None)


def _metrics(run: RunResult) -> Metrics | None:
    return run.metrics if run.window_complete is not False else None


def _ratio(run: RunResult) -> float | None:
    metrics = _metrics(run)
    return metrics.baseline.step_time_ratio if metrics and metrics.baseline else None


def _created(run: RunResult) -> float | None:
    try:
        return datetime.fromisoformat(run.created or "").timestamp()
    except ValueError:
        return None


GAUGES: Sequence[tuple[str, str, Callable[[RunResult], float | None]]] = (
    ("llmb_run_created_timestamp_seconds", "Time at which the run was created.", _created),
    ("llmb_step_time_seconds", "Mean step time over the measuring window.", _metric("step_time_s")),
    ("llmb_step_time_ratio", "Measured over published step time.", _ratio),
    ("llmb_tokens_per_second", "Tokens per second of all GPUs.", _metric("tokens_per_s")),
    ("llmb_model_tflops_per_gpu", "Model TFLOP/s per GPU.", _metric("model_tflops_per_gpu")),
    ("llmb_mfu_ratio", "Model FLOPs utilisation as a fraction.", _metric("mfu")),
    ("llmb_goodput_ratio", "Share of the wall time in productive steps.", lambda run: run.goodput),
)


@check_arguments
def prometheus_text(runs: Sequence[RunResult]) -> str:
    """Return a gauge for each metric of each run, and its state and verdict as labels of a gauge that is 1."""
    lines = [line for name, text, read in GAUGES for line in _gauge(name, text, [(run, read(run)) for run in runs])]
    lines += [
        "# HELP llmb_run_info State and verdict of the run.",
        "# TYPE llmb_run_info gauge",
        *(f"llmb_run_info{{{_labels(run, state=run.state, verdict=run.verdict or '')}}} 1" for run in runs),
    ]
    return "\n".join(lines) + "\n"


def _gauge(name: str, text: str, values: Sequence[tuple[RunResult, float | None]]) -> Iterator[str]:
    known = [(run, value) for run, value in values if value is not None]
    if known:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
        yield from (f"{name}{{{_labels(run)}}} {value!r}" for run, value in known)


def _labels(run: RunResult, **more: str) -> str:
    values = {name: getattr(run, name) for name in LABELS} | more
    texts = {name: "" if value is None else printable_line(str(value)) for name, value in values.items()}
    return ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in texts.items())
