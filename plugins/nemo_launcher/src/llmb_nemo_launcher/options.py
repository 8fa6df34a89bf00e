"""Options of NeMo Launcher in [framework]."""

import attrs

from llmb import ConfigOverrides, Duration, FrozenMap

COMPARABLE = {"comparable": True}  # locations and preparation of the data do not change the speed of the training


@attrs.frozen(kw_only=True)
class NeMoLauncherOptions:
    """Options in [framework]."""

    config: ConfigOverrides = attrs.field(factory=FrozenMap)
    """Overrides of NeMo's configuration, which take precedence over the recipe; strings use Hydra's syntax
    (`"[0,1]"`). Unknown keys and keys that would replace a table are errors; `"+model.new" = 1` adds a key.
    Default: empty. Example: ``{ "model.gc_interval" = 100 }``
    """
    nemo: str = attrs.field(default="/opt/NeMo", metadata=COMPARABLE)
    """Sources of NeMo in the image, or in a mount. Example: ``"/opt/mine/NeMo"``"""
    launcher: str = attrs.field(default="/opt/NeMo-Framework-Launcher", metadata=COMPARABLE)
    """Sources of NeMo Framework Launcher in the image, or in a mount. Example: ``"/opt/mine/launcher"``"""
    index_mapping_dir: str | None = attrs.field(default=None, metadata=COMPARABLE)
    """Existing folder in which NeMo stores the index of its data. Default: `index_mapping` in the cache.
    Example: ``"/lustre/me/index"``
    """
    dataset_time_limit: Duration | None = attrs.field(default=None, metadata=COMPARABLE)
    """Time limit of the job that creates the data. Default: the recipe's, `"3h"`. Example: ``"5h"``"""
