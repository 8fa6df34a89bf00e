"""A proposal of `line` for [log] from an existing log, for ``llmb new-plugin --from``."""
