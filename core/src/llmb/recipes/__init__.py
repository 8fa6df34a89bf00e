"""Recipes and accelerators, read from TOML."""
