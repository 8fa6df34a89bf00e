"""The settings of bash for llmb's own scripts, instead of those of the user.

llmb starts bash with ``-p``: bash then ignores functions that the environment exports. The variables below are left
out of the environment, so that the scripts of a job do not get them either.
"""

REMOVED_VARIABLES = (
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",  # a file that bash runs before each script; the file may print, change the directory, or `set -e`
    "CDPATH",
    "GLOBIGNORE",
    "GREP_OPTIONS",
    "POSIXLY_CORRECT",
    "SHELLOPTS",  # may contain errexit, which would lose jobs
    "TMOUT",  # sites set it to end idle logins; bash takes it as a time limit of every `read`
)
"""Variables that change what a script does. Most are those that bash ignores with ``-p``."""

UMASK = "o-w"
"""The argument of ``umask``, which changes the user's umask: other users must not change what jobs run.

A group may, in a shared work directory.
"""
