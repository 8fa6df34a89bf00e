"""Frameworks as data: a TOML file that describes a training script, its log and its recipes."""
