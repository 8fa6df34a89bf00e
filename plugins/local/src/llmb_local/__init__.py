"""The local scheduler: runs llmb jobs on this machine."""
