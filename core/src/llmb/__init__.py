"""Benchmark LLM training on GPU clusters.

As a library: `load` a workload spec, `run` it, `parse` a log, compute `metrics`. For plugins: the hook specifications
and the values that hooks take and return. ``__init__.pyi`` lists all public names. They are imported when they are
first used, so that ``import llmb`` is cheap.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
