"""The watchdog process for iptables, whose rules do not expire: it switches the redirect off when the node cache dies
or sends no keepalive for KEEPALIVE_TIMEOUT seconds, and on again at the next keepalive.

`watchdog_launch` runs it as a script in a bare interpreter. It is the parent of the node cache and lives as long, so it
imports as little as possible to save memory. It forwards signals to the node cache and exits with its exit status.
"""

import os
import select
import signal
import sys
import time

KEEPALIVE_TIMEOUT = 1.0  # seconds
HEARTBEAT_VARIABLE = "TOPODNS_HEARTBEAT_FD"

# Messages of the node cache over the keepalive pipe, an octet each
RENEW = b"+"
EXPIRE = b"-"
LEAVE = b"!"  # the node cache removes its rules itself or hands them to another instance: the watchdog does no more

_PATIENCE = 2.0  # seconds for one run of a program
_FINAL_RETRIES = 5.0  # seconds for switching off after the node cache has ended
_RETRY = 0.2  # seconds
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Supervision:
    """Decides from the keepalives whether the redirect should be on. Pure: time, in seconds, is an argument."""

    def __init__(self, on: bool | None) -> None:
        """`on`: whether the redirect is on at the start; None: unknown."""
        self._on = on
        self._renewed: float | None = None  # time of the last RENEW; None: should be off
        self._is_finished = False

    def receive(self, messages: bytes, now: float) -> None:
        """Process messages of the node cache, an octet each.

        The last RENEW (redirect on for KEEPALIVE_TIMEOUT) or EXPIRE (off now) counts; after any LEAVE, `due` is None.
        """
        self._is_finished = self._is_finished or LEAVE in messages
        if messages.rfind(RENEW) > messages.rfind(EXPIRE):
            self._renewed = now
        elif EXPIRE in messages:
            self._renewed = None

    def end(self) -> None:
        """Note that no keepalive will come (pipe closed or node cache ended): the redirect should be off."""
        self._renewed = None

    def due(self, now: float) -> bool | None:
        """Whether the redirect is to be switched on (True) or off (False); None if nothing has to change."""
        desired = self._renewed is not None and now - self._renewed < KEEPALIVE_TIMEOUT
        return None if self._is_finished or desired == self._on else desired

    def switched(self, on: bool, succeeded: bool) -> None:
        """Note the result of switching on or off.

        After a failure it is unknown whether the redirect is on, since it may be on for one IP version only: `due` then
        asks for a switch until one succeeds.
        """
        self._on = on if succeeded else None

    def timeout(self, now: float) -> float | None:
        """Seconds until `due` should be called again without a further message; None: not before a message.

        That is _RETRY while a switch is due, since it has failed, else the time until the last RENEW expires.
        """
        if self.due(now) is not None:
            return _RETRY
        return None if self._renewed is None or not self._on else max(0.0, self._renewed + KEEPALIVE_TIMEOUT - now)


class RedirectRules:
    """Switches the redirect with iptables-restore: each program has its own input for on and for off."""

    def __init__(self, programs: list[tuple[str, bytes, bytes]]) -> None:
        self._programs = programs  # path, input for on, input for off

    def switch(self, on: bool) -> bool:
        """Switch on or off, by one program after another. Returns whether all succeeded.

        If a program fails to switch on, those after it do not run. If one fails to switch off, it runs again without
        the xtables lock, and so do those after it.
        """
        locked = False
        succeeded = True
        for path, on_input, off_input in self._programs:
            done = not locked and _run(path, on_input if on else off_input, {})
            locked = not done
            succeeded &= done or (not on and _run(path, off_input, {"XTABLES_LOCKFILE": "/dev/null"}))
        return succeeded


def _run(path: str, text: bytes, extra: dict[str, str]) -> bool:
    stdin = os.memfd_create("rules")
    os.write(stdin, text)
    os.lseek(stdin, 0, os.SEEK_SET)
    environment = {"PATH": os.path.dirname(path), "LC_ALL": "C", **extra}
    arguments = (path, "--noflush", "-w", "1")
    pid = os.posix_spawn(path, arguments, environment, file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0)])
    os.close(stdin)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


class Child:
    """The node cache as a child process: start it, read its keepalives, forward signals, reap it."""

    def __init__(self, command: list[str]) -> None:
        self.heartbeat, write_end = os.pipe()
        os.set_blocking(self.heartbeat, False)
        os.set_inheritable(write_end, True)
        self._wakeup_read, wakeup_write = os.pipe()
        for end in (self._wakeup_read, wakeup_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        environment = {**os.environ, HEARTBEAT_VARIABLE: str(write_end)}
        self._pid = os.posix_spawn(command[0], command, environment, setsigdef=_FORWARDED)
        os.close(write_end)
        self.status: int | None = None
        self._is_pipe_open = True
        for number in _FORWARDED:
            signal.signal(number, self._forward)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)  # the child inherited the mask (`app.signals`)

    def wait(self, timeout: float | None) -> bytes | None:
        """Wait for messages, the child's end, a signal, or `timeout` seconds (None: no limit).

        Returns the messages, b"" for none, None once the pipe is closed. Sets `status` once the child has ended.
        """
        ends = [self._wakeup_read, self.heartbeat] if self._is_pipe_open else [self._wakeup_read]
        ready, _, _ = select.select(ends, (), (), timeout)
        if self._wakeup_read in ready:
            os.read(self._wakeup_read, 4096)
        self._reap()
        if self.heartbeat not in ready:
            return b"" if self._is_pipe_open else None
        messages = os.read(self.heartbeat, 4096)
        self._is_pipe_open = bool(messages)
        return messages or None

    def _reap(self) -> None:
        """Reap all ended child processes: in a container this is process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self.status = os.waitstatus_to_exitcode(status)

    def _forward(self, number: int, _: object) -> None:
        if self.status is None:
            os.kill(self._pid, number)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: with a Python handler, SIGCHLD writes to the wake-up descriptor."""


def supervise(supervision: Supervision, rules: RedirectRules, child: Child) -> int:
    """Run until the child has ended and the redirect is off (or the child sent LEAVE). Returns the exit status.

    Switching off is retried for _FINAL_RETRIES seconds. A child killed by signal N gives 128 + N.
    """
    deadline: float | None = None
    while True:
        now = time.monotonic()
        due = supervision.due(now)
        if due is not None:
            succeeded = rules.switch(due)
            supervision.switched(due, succeeded)
            if succeeded:
                continue
        if child.status is not None:
            deadline = deadline or now + _FINAL_RETRIES
            if due is None or now > deadline:
                return child.status if child.status >= 0 else 128 - child.status
        messages = child.wait(supervision.timeout(now))
        if messages is None or child.status is not None:
            supervision.end()
        if messages:
            supervision.receive(messages, time.monotonic())


def main(arguments: list[str]) -> int:
    """Run the watchdog. Returns the exit status.

    Arguments: the number of a descriptor with the output of `watchdog_launch.watchdog_input`, then the node cache's
    command.
    """
    with open(int(arguments[0]), "rb") as settings:
        first, *fields = settings.read().split(b"\0")
    programs = [
        (os.fsdecode(path), on, off) for path, on, off in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
    ]
    supervision = Supervision(None if first == b"unknown" else False)
    return supervise(supervision, RedirectRules(programs), Child(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
