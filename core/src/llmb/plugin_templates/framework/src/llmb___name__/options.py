"""Options of the framework: keys of the spec's [framework] table."""

import attrs


@attrs.frozen(kw_only=True)
class Options:
    """Options in [framework]. Every field has a default and a description below it."""

    args: tuple[str, ...] = ()
    """Further arguments of the training script. Default: none. Example: ``["--seed=1"]``"""
