"""Names of environment variables and keys that have a meaning of their own."""

import re

SECRET_NAME = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|(API|ACCESS|PRIVATE|SECRET)_?KEY)$", re.I)
"""Keys of any table that hold a secret. ``key`` alone is not one: a plugin may have a key of that name."""

SECRET_VARIABLE = re.compile(SECRET_NAME.pattern + r"|(^|_)(KEY|PAT|WEBHOOK(_URL)?)$", re.I)
"""Environment variables that hold a secret.

There, each ``KEY`` and each ``PAT`` (personal access token) is one, and so is the address of a webhook, which lets
everyone post.
"""

SET_BY_SCHEDULERS = re.compile(r"LLMB_.*|(LOCAL_|NODE_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)")
"""Environment variables that every scheduler sets for each task."""
