"""Time limits of SSH connections, and what they are computed from."""

CONNECT_TIMEOUT_S = 15
"""For each of: the connection, the server's greeting, the login. ``ConnectTimeout`` of the SSH configuration wins."""

LOGIN_TIMEOUT_S = 60.0
"""For the user's profiles."""

KEEPALIVE_S = 30
"""Between two messages that keep an idle connection open."""

SILENCE_S = 15.0
"""Silence after which the server is probed."""

RESPONSE_S = 15.0
"""For the response to the probe."""

GRACE_S = 10
"""After its timeout, a command that still runs on the host is killed."""

SLOWEST_BYTES_PER_S = 100_000
"""Of a slow network. The timeout of a transfer assumes this speed."""

SPARE_S = 60.0
"""Added to the time that the bytes of a transfer take."""
