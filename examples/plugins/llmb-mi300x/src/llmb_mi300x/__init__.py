"""The AMD Instinct MI300X for llmb."""
