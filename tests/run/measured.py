"""Commands whose CPU seconds are counted: the user's and the system's of a command and of all that it waited for."""
import os
import signal
import subprocess
import threading
import time

GRACE_S = 10  # between asking a command to end and ending it
running = set()
lock = threading.Lock()
starts = False  # the main thread is between making a process and knowing it
waiting = False  # a signal came meanwhile


def interrupt(*_):
    """A signal's handler: KeyboardInterrupt, but not before a process that is being made can be ended with the others.
    Further signals do nothing, as they would cut short what ends the processes: `timeout` sends one to its command, and
    one to its group. They have a handler for that, because a process that is made now would inherit SIG_IGN."""
    global waiting
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if starts:
        waiting = True
    else:
        raise KeyboardInterrupt


def start(argv, env):
    """Returns a process in a session of its own, which end_all knows."""
    global starts
    starts = threading.current_thread() is threading.main_thread() or starts
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, **(env or {})}, start_new_session=True, text=True, errors="replace")
    with lock:
        running.add(process.pid)
    return process


def started():
    """Says that the main thread knows its process, or has none; raises what came meanwhile."""
    global starts, waiting
    if threading.current_thread() is not threading.main_thread():
        return
    starts = False
    if waiting:
        waiting = False
        raise KeyboardInterrupt


class Ended:
    def __init__(self, code, cpu_s, wall_s):
        self.code, self.cpu_s, self.wall_s = code, cpu_s, wall_s


def members(session):
    """The processes of a session, which process groups of their own do not leave."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                state, _, _, its_session = stat.read().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # no process, or one that has ended
        if int(its_session) == session and state != "Z":
            yield int(name)


def end_session(session):
    """Asks all processes of a session to end, also those that others of them start meanwhile, and ends those that are
    still there after a while."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until, asked = time.monotonic() + GRACE_S, set()
        while there := list(members(session)):
            for process in there:
                if process in asked:
                    continue
                asked.add(process)
                try:
                    os.kill(process, number)
                except ProcessLookupError:
                    pass
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        if not there:
            return


def end_all():
    """Ends every command that runs, with all that it has started."""
    with lock:
        sessions = list(running)
    for session in sessions:
        end_session(session)


def measured(argv, on_line, env=None, limit_s=600):
    """Runs argv in a session of its own and hands each line that it prints to on_line. One that is still there after
    limit_s is ended, and on_line told so."""
    begin = time.monotonic()
    try:
        process = start(argv, env)
    except OSError as error:
        started()
        on_line(f"dev: {argv[0]}: {error.strerror}")
        return Ended(127, 0.0, 0.0)
    expired = threading.Event()

    def expire():
        expired.set()
        end_session(process.pid)

    timer = threading.Timer(limit_s, expire)
    timer.daemon = True
    timer.start()
    try:
        started()
        for line in process.stdout:
            on_line(line.rstrip("\n"))
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        end_session(process.pid)
        raise
    finally:
        timer.cancel()
        with lock:
            running.discard(process.pid)
        process.stdout.close()
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if expired.is_set():
        on_line(f"dev: {' '.join(argv[:3])} ...: not done after {limit_s} s, so it was ended")
        code = code or 124
    return Ended(code, used.ru_utime + used.ru_stime, time.monotonic() - begin)
