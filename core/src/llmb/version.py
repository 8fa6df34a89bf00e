"""The version of llmb."""

VERSION = "0.1.0"
