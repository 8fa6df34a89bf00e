"""Fields of an iteration line, of every version and fork of Megatron."""

import re

_NAMES = {
    b"elapsed time per iteration (ms)": ("time_s", 1000.0),
    b"elapsed time per iteration (s)": ("time_s", 1.0),  # BigScience
    b"lm loss": ("loss", 1.0),
    b"lm-loss": ("loss", 1.0),  # DeepSpeed
    b"lm_loss": ("loss", 1.0),  # GPT-NeoX
    b"throughput per GPU (TFLOP/s/GPU)": ("tflops_per_gpu", 1.0),
    b"throughput (TFLOP/s/GPU)": ("tflops_per_gpu", 1.0),
    b"compute per GPU (TFLOP/s/GPU)": ("tflops_per_gpu", 1.0),  # Primus 26: value of the step (avg mean)
    b"TFLOPs": ("tflops_per_gpu", 1.0),  # DeepSpeed: per GPU
    b"approx flops per GPU": ("tflops_per_gpu", 1.0),  # GPT-NeoX: 55.2TFLOPS
    b"tokens per gpu per second (tgs)": ("tokens_per_s_per_gpu", 1.0),  # DeepSpeed
    b"tokens per GPU (tokens/s/GPU)": ("tokens_per_s_per_gpu", 1.0),  # Primus: value of the step / mean
    b"tokens/s/GPU inst/harmonic mean": ("tokens_per_s_per_gpu", 1.0),  # Primus 26: value of the step / mean
    b"toks/s/gpu": ("tokens_per_s_per_gpu", 1.0),  # Megatron-LM, reinforcement learning
    b"tokens/sec/gpu": ("tokens_per_s_per_gpu", 1.0),  # Swiss AI
    b"tokens/sec/GPU": ("tokens_per_s_per_gpu", 1.0),
}
"""Printed names of the attributes of a Step, with the divisor of the printed value."""

_NUMBER = re.compile(
    rb"\s*([-+]?(?:(?:[1-9]\d{0,2}(?>(?:,\d{3}(?!\d))+)|\d++)(?:\.\d*+)?(?>[eE][-+]?\d++|)|(?i:nan|inf)))"
    rb"([KMBT]\b|[GTP]FLOPS\b)?(?!:|,\d|[dhm] \d+[hms])"
)
"""A number at the beginning of a text: ``6.5E+00``, ``1,234.5`` and ``1.258B``, but not ``12:30`` or ``3m 12s``."""

_SUFFIXES = {None: 1.0, b"K": 1e3, b"M": 1e6, b"B": 1e9, b"T": 1e12}  # Swiss AI
_SUFFIXES |= {b"GFLOPS": 1e-3, b"TFLOPS": 1.0, b"PFLOPS": 1e3}  # GPT-NeoX

_BLANKS = re.compile(b"|".join(re.escape(name).replace(rb"\ ", rb" ?") for name in sorted(_NAMES, key=len)[::-1]))
_WITHOUT_BLANKS = {name.replace(b" ", b""): name for name in _NAMES}
"""Names that may lack blanks, longest first, and the complete name of each."""

_MAX_NAMES = 1000  # limit of cached names; a real log has about 20


class Meanings(dict[bytes, tuple[str, float]]):
    """Meanings of printed names, each with its divisor, which is 0 for a name that is not an attribute of a Step."""

    def __missing__(self, name: bytes) -> tuple[str, float]:
        """Return the meaning of a name that is read for the first time, and keep it, since all lines have the same."""
        stripped = name.strip() if name[:1] == b" " else b""
        meaning = _NAMES.get(stripped) or (stripped.decode(errors="replace"), 0.0)
        if len(self) < _MAX_NAMES:
            self[name] = meaning
        return meaning


def unwrap(record: bytes) -> bytes:
    """Return a wrapped record in one line. A line may have lost the blank at which it was wrapped, or have quotes."""
    text = re.sub(rb'(?:",?)?\n+(?: *")?', b"", record)
    text = re.sub(rb"\|(?=[^ ])", b"| ", re.sub(rb":(?=[\d.+-])", b": ", text))
    return _BLANKS.sub(lambda name: _WITHOUT_BLANKS[name[0].replace(b" ", b"")], text)


def read_fields(record: bytes, meanings: Meanings) -> tuple[dict[str, float], dict[str, float]]:
    """Return the attributes of a Step and the other values of a record, which consists of `` name: value`` fields.

    Skip fields without a leading blank, which are the output of another rank.
    """
    known: dict[str, float] = {}
    other_values: dict[str, float] = {}
    for field in record.split(b"|"):
        name, _, text = field.partition(b": ")
        meaning, divisor = meanings[name]
        if not meaning:
            continue
        try:
            value = float(text)
        except ValueError:
            if not text:  # Megatron-LM of 2019: `` lm loss 6.5E+00 ``
                name, _, text = field.rstrip().rpartition(b" ")
                meaning, divisor = meanings[name]
                if not divisor:
                    continue
            match = _NUMBER.match(text)  # other text follows directly, or the field has two values or a suffix
            if match is None:
                continue
            value = float(match[1].replace(b",", b"")) * _SUFFIXES[match[2]]
        if divisor:
            known.setdefault(meaning, value if divisor == 1 else round(value / divisor, 9))
        else:
            other_values[meaning] = value
    if "loss" not in known and "loss" in other_values:  # of a fork that trains other models too
        known["loss"] = other_values.pop("loss")
    return known, other_values
