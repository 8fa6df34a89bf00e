"""Megatron-Bridge recipes for llmb."""
