"""A real sshd on loopback that lets this user in with a key of its own, and an `ssh` that finds it as host `place`."""

import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from waiting import wait_until

_SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
_SSH = shutil.which("ssh")


class Sshd:
    """The server and the keys that it takes, each with what it may do."""

    def __init__(self, folder: Path) -> None:
        if not (_SSHD and _SSH and shutil.which("ssh-keygen")):
            pytest.skip("no OpenSSH server and client are installed")
        self.folder = folder
        folder.mkdir(mode=0o700)
        for name in ("host", "key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        self.port = _find_port()
        self.allow("")
        self.programs = folder / "bin"  # to be first in PATH
        self.lead_through(self.port)
        self.child: subprocess.Popen[bytes] | None = None
        self.start()

    def allow(self, command: str) -> None:
        """Let the key in, to run any command or only this one."""
        key = (self.folder / "key.pub").read_text()
        quoted = command.replace('"', '\\"')
        (self.folder / "keys").write_text(f'restrict,command="{quoted}" {key}' if command else key)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # it does not start as root without it
        settings = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "keys",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "MaxStartups": 100,
        }
        (self.folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        assert _SSHD
        with (self.folder / "log").open("ab") as log:
            command = [_SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self.child is not None
        if self.child.poll() is not None:
            pytest.skip(f"sshd does not run here: {(self.folder / 'log').read_text()[-300:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """End it. Sessions under way go on."""
        if self.child:
            self.child.terminate()
            self.child.wait(30)
            self.child = None

    def lead_through(self, port: int) -> None:
        """Have the `ssh` of `programs` connect to a port, that of the server or of what stands before it."""
        settings = {
            "HostName": "127.0.0.1",
            "Port": port,
            "User": getpass.getuser(),
            "IdentityFile": self.folder / "key",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known",
            "StrictHostKeyChecking": "yes",
        }
        lines = "".join(f"  {name} {value}\n" for name, value in settings.items())
        (self.folder / "ssh_config").write_text(f"Host place home\n{lines}")
        host = (self.folder / "host.pub").read_text()
        (self.folder / "known").write_text(f"[127.0.0.1]:{port} {host}")
        self.programs.mkdir(exist_ok=True)
        (self.programs / "ssh").write_text(f'#!/bin/sh\nexec {_SSH} -F {self.folder / "ssh_config"} "$@"\n')
        (self.programs / "ssh").chmod(0o755)


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
