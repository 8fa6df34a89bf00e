"""A scheduler for llmb on a list of SSH hosts."""
