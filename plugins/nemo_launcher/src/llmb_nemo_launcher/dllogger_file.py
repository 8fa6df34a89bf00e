"""Records of DLLogger's file ``dllogger.json`` (``DLLL {...}``), which NeMo 1 writes next to its log.

Its format is in NVIDIA/dllogger, dllogger/logger.py (JSONStreamBackend).
"""

from llmb_nemo_launcher.json_record import json_after

_MARKER = b"DLLL "
RECORD = _MARKER + b"{"
_MAX_STEPS = 10**15


def read_record(line: bytes) -> tuple[int, dict[str, float]] | None:
    """Return the step of a record, counted from 0, and its numbers. Return None for other records, such as parameters.

    DLLogger writes a step as a number, or as a list that ends with it: ``[epoch, step]``.
    """
    record = json_after(_MARKER, line)
    step, data = record.get("step"), record.get("data")
    if isinstance(step, list) and len(step) > 1:
        step = step[-1]
    if type(step) is not int or not 0 <= step < _MAX_STEPS or not isinstance(data, dict):
        return None
    try:
        return step, {name: float(value) for name, value in data.items() if type(value) in (int, float)}
    except OverflowError:
        return None
