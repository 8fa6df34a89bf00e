"""A real Slurm cluster on this machine: its own munge key, ports and folder, emulated nodes, GPUs that are files.

A client only needs ``SLURM_CONF`` (see `Cluster.env`). Nothing in /etc is read or changed. The cluster needs root: the
daemon of each node runs in its own mount and UTS namespace, so that each node has its own host name.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from parts.database import Database
from parts.deadline import wait_until
from parts.ports import free_ports

PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "sbatch", "squeue", "sacct", "unshare")
CPUS_PER_NODE, MEMORY_MB, GPUS_PER_NODE = 64, 64000, 8


def missing() -> str:
    """Return which parts of a cluster this machine lacks, or an empty string."""
    if os.geteuid() != 0:
        return "a Slurm cluster of our own needs root"
    absent = [name for name in PROGRAMS if not shutil.which(name, path=_path())]
    return f"{', '.join(absent)} not installed (see .ci/install-parts)" if absent else ""


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin"


class Cluster:
    """Slurm cluster with the nodes node1, node2, ... with 8 GPUs each.

    ``accounting`` starts slurmdbd with MariaDB, which sacct needs. ``cgroups`` makes out-of-memory errors possible.
    ``settings`` are more lines of slurm.conf. Partitions: batch (the default), short (at most 2 minutes, 2 nodes),
    scavenger (its jobs are preempted and requeued for jobs of the other partitions), and urgent (never preempted).
    """

    def __init__(
        self,
        *,
        nodes: int = 4,
        accounting: bool = True,
        cgroups: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self.folder = Path(tempfile.mkdtemp(prefix="llmb-slurm-"))
        self.folder.chmod(0o755)
        self.shared = self.folder / "shared"
        """Folder for jobs, as on a shared file system."""
        self._cgroups = cgroups
        self._settings = dict(settings or {})
        self._ports = free_ports(nodes + 2)
        self._database = Database(self.folder) if accounting else None
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Cluster:
        try:
            return self.start()
        except BaseException:
            self.stop()  # the daemons that did start
            raise

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def env(self) -> dict[str, str]:
        """Environment of a client of this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> Cluster:
        """Start all daemons, and wait until every node is idle."""
        self.shared.mkdir()
        self._write_files()
        self._start_munge()
        if self._database:
            self._database.start()
            self._start_accounting()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self._wait_until(self._all_idle, "idle nodes")
        return self

    def stop(self) -> None:
        """Stop all daemons and what outlives them, and remove the folder."""
        for name in [name for name in self._daemons if name != "munged"]:
            self.kill(name)
        if self._database:
            self._database.stop()
        self.kill("munged")
        self._end_leftovers()
        shutil.rmtree(self.folder, ignore_errors=True)

    # daemons

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a daemon, and wait for its end: slurmctld, slurmdbd, munged, or a node by its name."""
        if (daemon := self._daemons.pop(name, None)) is not None:
            with suppress(ProcessLookupError):  # it has exited by itself
                os.killpg(daemon.pid, number)
            daemon.wait()

    def start_controller(self) -> None:
        """Start slurmctld, which loads its saved state."""
        self._start("slurmctld", ["slurmctld", "-D", "-f", self.env["SLURM_CONF"]])
        self._wait_until(lambda: "UP" in self.run("scontrol", "ping").stdout, "slurmctld")

    def start_accounting(self) -> None:
        """Start slurmdbd."""
        self._start("slurmdbd", ["slurmdbd", "-D"])
        self._wait_until(lambda: self.run("sacctmgr", "-n", "show", "cluster").returncode == 0, "slurmdbd")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node in its own namespaces."""
        inside = f"hostname {node}; mount --bind {self.folder}/hosts /etc/hosts; exec slurmd -D -N {node}"
        self._start(node, ["unshare", "--mount", "--uts", "sh", "-c", inside])

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                command,
                env={"PATH": _path(), **self.env, "HOME": "/root"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition. Fail with the output of a daemon that exits meanwhile."""

        def is_true() -> bool:
            for name, daemon in self._daemons.items():
                if (code := daemon.poll()) is not None:
                    output = (self.folder / f"{name}.out").read_text(errors="replace")
                    raise RuntimeError(f"{name} exited with {code}:\n{output[-2000:]}")
            return condition()

        wait_until(is_true, what)

    # clients

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a client of this cluster."""
        return subprocess.run(command, env={**os.environ, **self.env}, capture_output=True, text=True, check=False)

    def order(self, *command: str) -> str:
        """Run a client that must succeed, and return its output."""
        done = self.run(*command)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def accounts(self, fields: str) -> list[str]:
        """Return the fields of all jobs in accounting, also of those that ended before midnight."""
        return self.order("sacct", "-X", "-n", "-P", "-S", "now-1days", "-o", fields).splitlines()

    def _all_idle(self) -> bool:
        states = self.run("sinfo", "-h", "-N", "-p", "batch", "-o", "%N %T").stdout.splitlines()
        return sorted(states) == sorted(f"{node} idle" for node in self.nodes)

    # files

    def _cluster_settings(self) -> dict[str, object]:
        controller, accounting, *_ = self._ports
        return {
            "ClusterName": "llmbtest",
            "SlurmctldHost": f"{socket.gethostname().split('.')[0]}(127.0.0.1)",
            "SlurmctldPort": controller,
            "SlurmUser": "root",
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge.sock,cred_expire=10",
            "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",  # otherwise it listens on every address
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": f"{self.folder}/spool/%n",
            "TmpFS": f"{self.folder}/tmp/%n",  # of PMIx, whose nodes must not share a folder
            "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": f"{self.folder}/slurmd.%n.pid",
            "ProctrackType": "proctrack/cgroup" if self._cgroups else "proctrack/linuxproc",
            "TaskPlugin": "task/cgroup" if self._cgroups else "task/none",
            "SlurmdParameters": "config_overrides",  # more CPUs than this machine has
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU_Memory",
            "GresTypes": "gpu",
            "DefMemPerCPU": 100,
            "ReturnToService": 2,
            "SchedulerParameters": "sched_interval=1,bf_interval=1,batch_sched_delay=0",
            "MessageTimeout": 60,  # a busy machine may need longer than the usual 10 s
            "SlurmdTimeout": 300,
            "KillWait": 30,
            "JobRequeue": 1,
            "MinJobAge": 3600,  # tests find the jobs of the last hour in the queue
            "PreemptType": "preempt/partition_prio",
            "PreemptMode": "REQUEUE",
            "MpiDefault": "none",
            **self._accounting_settings(accounting),
            **self._settings,
        }

    def _write_files(self) -> None:
        lines = [f"{key}={value}" for key, value in self._cluster_settings().items()]
        lines += [self._node_line(number) for number in range(len(self.nodes))]
        every = ",".join(self.nodes)
        lines += [
            f"PartitionName=batch Nodes={every} Default=YES MaxTime=1-0 PriorityTier=5 State=UP",
            f"PartitionName=short Nodes={','.join(self.nodes[:2])} MaxTime=2 PriorityTier=5 State=UP",
            f"PartitionName=scavenger Nodes={every} MaxTime=60 PriorityTier=1 State=UP",
            f"PartitionName=urgent Nodes={every} MaxTime=60 PriorityTier=9 PreemptMode=OFF State=UP",
        ]
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        for name in ("state", "spool", "dev"):
            (self.folder / name).mkdir()
        for node in self.nodes:
            (self.folder / "tmp" / node).mkdir(parents=True)
        (self.folder / "gres.conf").write_text(
            "".join(f"NodeName={node} Name=gpu Type=h100 File={self.folder}/dev/gpu[0-7]\n" for node in self.nodes)
        )
        for gpu in range(GPUS_PER_NODE):
            os.mknod(self.folder / f"dev/gpu{gpu}", 0o666 | stat.S_IFCHR, os.makedev(240, gpu))
        hosts = [Path("/etc/hosts").read_text(), *(f"127.0.0.1 {node}\n" for node in self.nodes)]
        (self.folder / "hosts").write_text("".join(hosts))
        if self._cgroups:
            text = "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\nAllowedSwapSpace=0\n"
            (self.folder / "cgroup.conf").write_text(text)

    def _node_line(self, number: int) -> str:
        return (
            f"NodeName={self.nodes[number]} NodeHostname={socket.gethostname().split('.')[0]} NodeAddr=127.0.0.1 "
            f"Port={self._ports[2 + number]} Sockets=2 CoresPerSocket={CPUS_PER_NODE // 2} RealMemory={MEMORY_MB} "
            f"Gres=gpu:h100:{GPUS_PER_NODE} Feature=h100,ib"
        )

    def _accounting_settings(self, port: int) -> dict[str, object]:
        if not self._database:
            return {"AccountingStorageType": "accounting_storage/none", "JobCompType": "jobcomp/none"}
        return {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": port,
            "AccountingStoragePass": self.folder / "munge.sock",  # the socket of munge, not a password
            "AccountingStorageEnforce": "associations,limits,qos",
            "AccountingStorageTRES": "gres/gpu",
            "JobAcctGatherType": "jobacct_gather/linux",
            "JobAcctGatherFrequency": 1,
        }

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        files = {
            "key-file": key,
            "socket": self.folder / "munge.sock",
            "pid-file": self.folder / "munge.pid",
            "log-file": self.folder / "munge.log",
            "seed-file": self.folder / "munge.seed",
        }
        options = [f"--{name}={path}" for name, path in files.items()]
        self._start("munged", ["munged", "--foreground", "--force", "--num-threads=4", *options])
        self._wait_until((self.folder / "munge.sock").exists, "munged")

    def _start_accounting(self) -> None:
        assert self._database
        settings = {
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": self._ports[1],
            "SlurmUser": "root",
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge.sock",
            "PidFile": self.folder / "slurmdbd.pid",
            "LogFile": self.folder / "slurmdbd.log",
            **self._database.slurm_settings,
        }
        (file := self.folder / "slurmdbd.conf").write_text(
            "".join(f"{key}={value}\n" for key, value in settings.items())
        )
        file.chmod(0o600)
        self.start_accounting()
        accounts = self.folder / "accounts"
        accounts.write_text(
            "Cluster - 'llmbtest':QOS='normal'\nParent - 'root'\nUser - 'root':DefaultAccount='proj1'\n"
            "Account - 'proj1'\nAccount - 'proj2'\n"
            "Parent - 'proj1'\nUser - 'root':AdminLevel='Administrator':DefaultAccount='proj1'\n"
            "Parent - 'proj2'\nUser - 'root'\n"
        )
        # slurmdbd may be busy with a new database
        self._wait_until(lambda: self.run("sacctmgr", "-i", "load", str(accounts)).returncode == 0, "sacctmgr load")

    def _end_leftovers(self) -> None:
        """Kill the steps and jobs that outlive their daemons. Their environment has our SLURM_CONF."""
        mark = f"SLURM_CONF={self.env['SLURM_CONF']}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if folder.name != str(os.getpid()) and mark in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:
                continue
