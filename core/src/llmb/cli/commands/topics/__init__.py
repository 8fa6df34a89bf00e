"""Texts of ``llmb help TOPIC``."""
