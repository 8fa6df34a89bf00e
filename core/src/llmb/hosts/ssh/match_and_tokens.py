"""The rules of OpenSSH for its configuration that paramiko does not follow."""

import os
import re
import shlex
from collections.abc import Iterable
from typing import Any

from paramiko import ConfigParseError, SSHConfig
from paramiko.config import SSHConfigDict

WITHOUT_VALUE = ("all", "canonical", "final")
WITH_VALUE = ("host", "originalhost", "user", "localuser", "tagged", "exec")
FILE_KEYS = ("identityfile", "certificatefile", "identityagent", "userknownhostsfile")
FILE_TOKENS = ["%C", "%d", "%h", "%L", "%l", "%n", "%p", "%r", "%u"]
VARIABLE = re.compile(r"\$\{(\w+)\}")


class OpenSSHConfig(SSHConfig):
    """An SSH configuration with OpenSSH's keywords of Match, and its tokens and variables in names of files."""

    def __init__(self) -> None:
        super().__init__()
        self.TOKENS_BY_CONFIG_KEY = {**SSHConfig.TOKENS_BY_CONFIG_KEY, **dict.fromkeys(FILE_KEYS, FILE_TOKENS)}

    def _get_matches(self, match: str) -> list[dict[str, Any]]:
        """Parse the criteria of a Match line. Raise ConfigParseError for an unknown keyword.

        To paramiko, a keyword that it does not know always matches, and so does one in upper case.
        """
        words, found = shlex.split(match), []
        while words:
            keyword, _, value = words.pop(0).partition("=")
            kind = keyword.removeprefix("!").lower()
            if kind not in (*WITHOUT_VALUE, *WITH_VALUE):
                raise ConfigParseError(f"llmb does not support Match {kind}")
            if kind in WITH_VALUE and not value:
                if not words:
                    raise ConfigParseError(f"Match {kind} has no value")
                value = words.pop(0)
            found.append({"type": kind, "param": value, "negate": keyword.startswith("!")})
        return [each for each in found if each["type"] != "all"] or found  # paramiko checks nothing after "all"

    def _does_match(self, match_list: list[dict[str, Any]], *arguments: Any) -> Any:
        """Check whether all criteria hold. The last argument has the options that are known so far."""
        tag = arguments[-1].get("tag", "")
        for each in match_list:
            if each["type"] == "tagged" and self._pattern_matches(each["param"], tag) == each["negate"]:  # type: ignore[attr-defined]  # the stubs lack it
                return False
        return super()._does_match(match_list, *arguments)  # type: ignore[misc]  # the same

    def _lookup(self, hostname: str, *arguments: Any, **options: Any) -> SSHConfigDict:
        """Return the options of a host. CanonicalDomains is optional."""
        found: SSHConfigDict = super()._lookup(hostname, *arguments, **options)  # type: ignore[misc]  # the same
        found.setdefault("canonicaldomains", "")
        return found

    def canonicalize(self, hostname: str, options: SSHConfigDict, domains: Iterable[str]) -> str:
        """Return the canonical form of HostName, which paramiko would replace by that of ``hostname``."""
        name = options["hostname"].replace("%h", hostname)
        if name.count(".") > int(options.get("canonicalizemaxdots", 1)):
            return name
        return str(super().canonicalize(name, options, domains))

    def _tokenize(self, config: SSHConfigDict, target_hostname: str, key: str, value: str) -> str:
        """Replace tokens, and in names of files also variables, ``%i`` and ``%k``.

        paramiko looks up the name of this machine for each value, even if it contains no token.
        """
        if key in FILE_KEYS:
            value = VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value)
            if "%" not in value:
                return value
            value = value.replace("%i", str(os.getuid())).replace("%k", config.get("hostkeyalias", target_hostname))
        return str(super()._tokenize(config, target_hostname, key, value))  # type: ignore[misc]  # the same
