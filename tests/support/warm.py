"""A `regard` command that starts in milliseconds: each call forks a process that has torch loaded.

Tests call `regard` several hundred times, and importing torch takes seconds. `start_server`
starts a process that imports everything once. The `regard` in its folder is a client: it sends its
arguments, folder, environment and standard streams, and exits with the code it gets back. The
server ends when the session of the tests has ended.
"""

import array
import json
import os
import signal
import socket
import struct
import sys
import time
import traceback
from pathlib import Path

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


def start_server(folder: Path, session: int) -> None:
    """Start a server and write its client to the folder; it ends after the process `session`."""
    address = str(folder / "socket")
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, __file__, address, str(session)],
        {**os.environ, "OMP_NUM_THREADS": "1"},  # tests are small, and cores are shared
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
    )
    while not os.path.exists(address):  # noqa: PTH110
        if os.waitpid(process, os.WNOHANG) != (0, 0):
            raise RuntimeError("the warm `regard` did not start")
        time.sleep(0.05)
    client = folder / "regard"
    client.write_text(CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)


def warm_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a shell that finds the warm `regard` of the folder first."""
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join([str(folder), scripts, os.environ["PATH"]])
    return {**os.environ, "PATH": path}


def serve(address: str, session: int) -> None:
    """Answer calls while the process `session` lives; each runs in a fork of this process."""
    from regard.cli.app import COMMANDS

    for command in COMMANDS.values():
        command.load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{address}.new")
    listener.listen(64)
    listener.settimeout(1)
    os.rename(f"{address}.new", address)  # noqa: PTH104
    while is_alive(session):
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            if os.fork() == 0:
                listener.close()
                answer_call(connection)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def answer_call(connection: socket.socket) -> None:
    """Run one command in a fork, and send back its exit code; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.setblocking(True)
    child = os.fork()
    if child == 0:
        run_command(connection)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def run_command(connection: socket.socket) -> None:
    """Run the command with the caller's streams, folder and environment, and exit."""
    width = struct.calcsize("i")
    size, control, _, _ = connection.recvmsg(8, socket.CMSG_LEN(3 * width))
    streams = array.array("i")
    streams.frombytes(control[0][2])
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    call = b""
    while len(call) < int.from_bytes(size, "big"):
        call += connection.recv(1 << 16)
    connection.close()
    words, folder, environment = json.loads(call)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    open_streams()
    sys.argv = ["regard", *words]
    from regard.cli.app import main

    code = 1
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def open_streams() -> None:
    """Open the standard streams as a new interpreter does: a terminal is written line by line."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    lines = 1 if os.isatty(1) else -1
    sys.stdout = open(1, "w", lines, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
