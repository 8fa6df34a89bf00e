"""What there is to run and to run it on: recipes and accelerators, read from TOML."""
