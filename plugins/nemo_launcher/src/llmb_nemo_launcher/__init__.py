"""NeMo Launcher recipes for llmb: Llama 3.1, Grok-1, Nemotron-4."""
