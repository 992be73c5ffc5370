"""A `regard` command that starts in milliseconds: each call forks a process that has torch loaded.

The shell blocks of the documents call `regard` about 150 times, and importing torch takes seconds.
`WarmCommand` starts one server, which imports everything once. The `regard` on PATH is a client: it
sends its arguments, folder, environment and standard streams, and exits with the code it gets back.
"""

import array
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

START_SECONDS = 300  # a busy machine may take long to import torch

CLIENT = """#!{python} -IS
import array, json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)
connection.sendmsg([len(call).to_bytes(8, "big")], [rights])
connection.sendall(call)
answer = connection.recv(1)
os._exit(answer[0] if answer else 70)
"""


class WarmCommand:
    """The server, and a folder with the client, to be put on PATH."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True)
        address = str(folder / "socket")
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, __file__, address])
        end = time.monotonic() + START_SECONDS
        while not os.path.exists(address):  # noqa: PTH110
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the warm `regard` did not start")
            time.sleep(0.05)
        client = folder / "regard"
        client.write_text(CLIENT.format(python=sys.executable, address=address))
        client.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """Return the environment of a shell that finds the warm `regard` first."""
        scripts = str(Path(sys.executable).parent)
        path = os.pathsep.join([str(self.folder), scripts, os.environ["PATH"]])
        return {**os.environ, "PATH": path}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def serve(address: str) -> None:
    """Answer calls until killed; each runs in a fork of this process, one after another."""
    from regard.cli.app import COMMANDS

    for command in COMMANDS.values():
        command.load()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{address}.new")
    listener.listen(8)
    os.rename(f"{address}.new", address)  # noqa: PTH104
    while True:
        connection, _ = listener.accept()
        with connection:
            child = os.fork()
            if child == 0:
                answer_call(connection)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            connection.sendall(bytes([code if code >= 0 else 128 - code]))


def answer_call(connection: socket.socket) -> None:
    """Run one command with the caller's streams, folder and environment, and exit."""
    width = struct.calcsize("i")
    size, control, _, _ = connection.recvmsg(8, socket.CMSG_LEN(3 * width))
    streams = array.array("i")
    streams.frombytes(control[0][2])
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    call = b""
    while len(call) < int.from_bytes(size, "big"):
        call += connection.recv(1 << 16)
    words, folder, environment = json.loads(call)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["regard", *words]
    from regard.cli.app import main

    code = 1
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
