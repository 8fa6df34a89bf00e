"""The fields of an iteration's record, of every version and fork."""

from __future__ import annotations

import re

from llmb import FrozenMap

_NAMES = {
    b"elapsed time per iteration (ms)": ("time_s", 1000.0),
    b"elapsed time per iteration (s)": ("time_s", 1.0),  # BigScience
    b"lm loss": ("loss", 1.0),
    b"lm-loss": ("loss", 1.0),  # DeepSpeed
    b"throughput per GPU (TFLOP/s/GPU)": ("tflops_per_gpu", 1.0),
    b"TFLOPs": ("tflops_per_gpu", 1.0),  # DeepSpeed: of one GPU
    b"tokens per gpu per second (tgs)": ("tokens_per_s_per_gpu", 1.0),  # DeepSpeed
    b"tokens per GPU (tokens/s/GPU)": ("tokens_per_s_per_gpu", 1.0),  # Primus: of this step / mean
    b"tokens/sec/gpu": ("tokens_per_s_per_gpu", 1.0),  # Swiss AI
}
"""Fields that a Step has, with what the printed figure is divided by; the rest are its figures."""

_NUMBER = re.compile(rb"\s*([-+]?(?:\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?+|(?i:nan|inf)))([KMBT]\b)?(?!:)")
_SUFFIXES = {None: 1.0, b"K": 1e3, b"M": 1e6, b"B": 1e9, b"T": 1e12}  # Swiss AI

_MOST_NAMES = 1000  # that are remembered; a real log has some 20


class Fields:
    """Reads `` name: value`` fields. What a name means is looked up once: a log has the same in each line."""

    def __init__(self) -> None:
        self._meanings: dict[bytes, tuple[str, float]] = {}

    def read(self, record: bytes) -> tuple[dict[str, float], FrozenMap[str, float]]:
        """What is a field of a Step, and the figures besides. What has no blank before it is another rank's text."""
        known: dict[str, float] = {}
        figures: dict[str, float] = {}
        meanings = self._meanings
        for field in record.split(b"|"):
            name, _, text = field.partition(b": ")
            meant, unit = meanings.get(name) or self._learn(name)
            if not meant:
                continue
            try:
                value = float(text)
            except ValueError:
                match = _NUMBER.match(text)  # something is glued to it, or it has two figures or a suffix
                if match is None:
                    continue
                value = float(match[1]) * _SUFFIXES[match[2]]
            if unit:
                known.setdefault(meant, value if unit == 1 else round(value / unit, 9))
            else:
                figures[meant] = value
        return known, FrozenMap(figures)

    def _learn(self, name: bytes) -> tuple[str, float]:
        stripped = name.strip() if name[:1] == b" " else b""
        meaning = _NAMES.get(stripped) or (stripped.decode(errors="replace"), 0.0)
        if len(self._meanings) < _MOST_NAMES:
            self._meanings[name] = meaning
        return meaning
