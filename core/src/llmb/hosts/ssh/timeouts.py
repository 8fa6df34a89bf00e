"""Time limits of SSH connections, and what they are computed from."""

CONNECT_TIMEOUT_S = 15
"""Limit for each of: the connection, the server's greeting, the login, unless ~/.ssh/config has ConnectTimeout."""

LOGIN_TIMEOUT_S = 60.0
"""Limit for the user's profiles at login."""

KEEPALIVE_S = 30
"""Pause between two messages that keep an idle connection open."""

SILENCE_S = 15.0
"""Silence after which the server is probed."""

RESPONSE_S = 15.0
"""Limit for the server's response to the probe."""

GRACE_S = 10
"""Time after its timeout at which a command that still runs on the host is killed."""

SLOWEST_BYTES_PER_S = 100_000
"""Speed of a slow network, which the timeout of a transfer assumes."""

SPARE_S = 60.0
"""Time that is added to that of the bytes of a transfer."""
