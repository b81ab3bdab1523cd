/* The local launcher. Each rank leads a process group of its own, so that what it starts ends with it; its output comes
 * through two pipes. One poll over the pipes and a signalfd drives everything. Should the launcher itself be killed, a
 * guard process that holds the end of a pipe sees it and ends the groups. */
#include "bench/launch/launch.h"

#include "bench/launch/prefix.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const double SPEAK_S = 3.0, TERMINATE_S = 2.0, DRAIN_S = 1.0;

typedef struct {
    pid_t pid; /* also its process group; 0 once it is reaped */
    slc_prefix_stream out, err;
} rank_process;

typedef struct {
    const slc_launch_options *options;
    rank_process *ranks;
    int alive;
    int signals;    /* signalfd */
    int guard_pipe; /* write end */
    pid_t guard;
    sigset_t taken, before;
    char port[16], token[33];
    int interrupts;     /* Ctrl-C and its kin so far */
    int exit_code;      /* of the first failure */
    uint64_t end_at_ns; /* when survivors get SIGTERM; UINT64_MAX: not yet */
    bool terminated;    /* they got it: SIGKILL is next */
} job;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "sluice run: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* ---- Before the ranks start ---- */

static sluice_status choose_port(job *j)
{
    int port = j->options->port;
    if (!port) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        bool found = fd >= 0 && !bind(fd, (struct sockaddr *)&address, length) &&
                     !getsockname(fd, (struct sockaddr *)&address, &length);
        if (fd >= 0) close(fd);
        if (!found) return slc_error(SLUICE_ERR_SYSTEM, "no free port: %s", strerror(errno));
        port = ntohs(address.sin_port);
    }
    snprintf(j->port, sizeof j->port, "%d", port);
    return SLUICE_OK;
}

static sluice_status make_token(job *j)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return slc_error(SLUICE_ERR_SYSTEM, "no random bytes for the job's token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(j->token + 2 * i, 3, "%02x", bytes[i]);
    return SLUICE_OK;
}

static sluice_status take_signals(job *j)
{
    struct sigaction hang_up;
    sigemptyset(&j->taken);
    const int which[] = {SIGCHLD, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) sigaddset(&j->taken, which[i]);
    if (!sigaction(SIGHUP, NULL, &hang_up) && hang_up.sa_handler != SIG_IGN) sigaddset(&j->taken, SIGHUP); /* nohup */
    sigprocmask(SIG_BLOCK, &j->taken, &j->before);
    j->signals = signalfd(-1, &j->taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return j->signals < 0 ? slc_error(SLUICE_ERR_SYSTEM, "signalfd: %s", strerror(errno)) : SLUICE_OK;
}

/* ---- Starting ---- */

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void set_environment(const job *j, int rank)
{
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", j->options->ranks);
    set_number("LOCAL_WORLD_SIZE", j->options->ranks);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", j->port, 1);
    setenv("SLUICE_JOB_TOKEN", j->token, 1);
    if (j->options->timeout_s) setenv("SLUICE_COMM_TIMEOUT", j->options->timeout_s, 1);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE"); /* it would say that someone else holds MASTER_PORT */
}

/* In the new process; does not return. `out` and `err`: -1 for what it has. */
static void become_rank(const job *j, int rank, pid_t launcher, int out, int err)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(128 + SIGKILL); /* it died before the line above */
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    if (out >= 0) dup2(out, STDOUT_FILENO);
    if (err >= 0) dup2(err, STDERR_FILENO);
    if (out < 0) signal(SIGTTOU, SIG_IGN); /* its group is not the terminal's foreground: let it write all the same */
    set_environment(j, rank);
    signal(SIGINT, SIG_DFL); /* a shell that starts us in the background ignores it, for the ranks too */
    sigprocmask(SIG_SETMASK, &j->before, NULL);
    execvp(j->options->command[0], j->options->command);
    int why = errno;
    say("cannot run %s: %s", j->options->command[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

static sluice_status start_rank(job *j, int rank)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    sluice_status status = SLUICE_OK;
    pid_t pid = -1, launcher = getpid();
    bool piped = rank > 0 || !j->options->first_speaks;
    if (piped && (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))) {
        status = slc_error(SLUICE_ERR_SYSTEM, "rank %d: pipe: %s", rank, strerror(errno));
        goto close_all;
    }
    pid = fork();
    if (pid < 0) {
        status = slc_error(SLUICE_ERR_SYSTEM, "rank %d: fork: %s", rank, strerror(errno));
        goto close_all;
    }
    if (pid == 0) become_rank(j, rank, launcher, out[1], err[1]);
    setpgid(pid, pid); /* whoever comes first: a signal to the group must never miss it */
    j->ranks[rank].pid = pid;
    j->alive++;
    slc_prefix_init(&j->ranks[rank].out, rank, out[0], STDOUT_FILENO);
    slc_prefix_init(&j->ranks[rank].err, rank, err[0], STDERR_FILENO);
    out[0] = err[0] = -1;

close_all:
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0) close(out[i]);
        if (err[i] >= 0) close(err[i]);
    }
    return status;
}

static void signal_all(const job *j, int signal)
{
    for (int i = 0; i < j->options->ranks; i++)
        if (j->ranks[i].pid > 0) kill(-j->ranks[i].pid, signal);
}

/* Ends the groups when the launcher is gone without having said so. */
static sluice_status start_guard(job *j)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return slc_error(SLUICE_ERR_SYSTEM, "guard: pipe: %s", strerror(errno));
    j->guard = fork();
    if (j->guard < 0) {
        close(ends[0]);
        close(ends[1]);
        return slc_error(SLUICE_ERR_SYSTEM, "guard: fork: %s", strerror(errno));
    }
    if (j->guard == 0) {
        setpgid(0, 0);
        dup2(ends[0], 0);
        close_range(1, ~0u, 0); /* an open pipe or terminal here would keep others waiting */
        char byte;
        ssize_t got;
        do got = read(0, &byte, 1);
        while (got < 0 && errno == EINTR);
        if (got == 0) signal_all(j, SIGKILL);
        _exit(0);
    }
    close(ends[0]);
    j->guard_pipe = ends[1];
    return SLUICE_OK;
}

static void end_guard(job *j)
{
    if (j->guard <= 0) return;
    kill(j->guard, SIGKILL);
    waitpid(j->guard, NULL, 0);
    close(j->guard_pipe);
}

/* ---- While they run ---- */

static uint64_t later(double seconds)
{
    return slc_clock_ns() + (uint64_t)(seconds * 1e9);
}

static void note_end(job *j, int rank, const siginfo_t *info)
{
    bool killed = info->si_code != CLD_EXITED;
    int code = killed ? 128 + info->si_status : info->si_status;
    if (!code) return;
    if (!j->exit_code) {
        j->exit_code = code;
        j->end_at_ns = later(SPEAK_S);
        if (j->alive && !j->interrupts) say("rank %d failed; the others have %.0f s to speak", rank, SPEAK_S);
    }
    if (killed)
        say("rank %d was killed by signal %d (%s)", rank, info->si_status, strsignal(info->si_status));
    else
        say("rank %d ended with exit code %d", rank, code);
}

/* The dead are looked at before they are reaped: until then nobody else can get the number of their group. */
static void reap(job *j)
{
    for (int i = 0; i < j->options->ranks; i++) {
        siginfo_t info = {0};
        if (!j->ranks[i].pid) continue;
        if (waitid(P_PID, (id_t)j->ranks[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid) continue;
        kill(-j->ranks[i].pid, SIGKILL);
        waitpid(j->ranks[i].pid, NULL, 0);
        j->ranks[i].pid = 0;
        j->alive--;
        note_end(j, i, &info);
    }
}

static void take_interrupt(job *j, int signal)
{
    if (j->interrupts++) {
        say("%s again: killing the ranks", strsignal(signal));
        signal_all(j, SIGKILL);
    } else {
        say("%s: handed to the ranks; once more kills them", strsignal(signal));
        signal_all(j, signal);
    }
}

static void read_signals(job *j)
{
    struct signalfd_siginfo info;
    while (read(j->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) take_interrupt(j, (int)info.ssi_signo);
    reap(j);
}

static void check_deadlines(job *j, uint64_t limit_at_ns)
{
    uint64_t now = slc_clock_ns();
    if (now >= limit_at_ns && !j->exit_code) {
        say("the time limit of %g s is over", j->options->limit_s);
        j->exit_code = 124;
        j->end_at_ns = now;
    }
    if (now < j->end_at_ns) return;
    signal_all(j, j->terminated ? SIGKILL : SIGTERM);
    j->end_at_ns = later(TERMINATE_S);
    j->terminated = true;
}

static int poll_timeout_ms(uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) return -1;
    uint64_t now = slc_clock_ns();
    uint64_t left_ms = until_ns > now ? (until_ns - now) / 1000000u + 1 : 0;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

static bool any_pipe_open(const job *j)
{
    for (int i = 0; i < j->options->ranks; i++)
        if (j->ranks[i].out.from >= 0 || j->ranks[i].err.from >= 0) return true;
    return false;
}

/* One round: waits for output, a signal or `until_ns`. */
static void wait_and_pass_on(job *j, struct pollfd *fds, uint64_t until_ns)
{
    int count = 1;
    fds[0] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    for (int i = 0; i < j->options->ranks; i++) {
        fds[count++] = (struct pollfd){.fd = j->ranks[i].out.from, .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = j->ranks[i].err.from, .events = POLLIN};
    }
    if (poll(fds, (nfds_t)count, poll_timeout_ms(until_ns)) < 0) return;
    for (int i = 1; i < count; i++) {
        slc_prefix_stream *stream = i % 2 ? &j->ranks[(i - 1) / 2].out : &j->ranks[(i - 1) / 2].err;
        if (fds[i].revents) slc_prefix_pass_on(stream);
    }
    if (fds[0].revents) read_signals(j);
}

static void note_lost_output(job *j)
{
    for (int i = 0; i < j->options->ranks; i++) {
        const rank_process *rank = &j->ranks[i];
        int why = rank->out.lost ? rank->out.lost : rank->err.lost;
        if (!why) continue;
        say("output of rank %d was lost: %s", i, strerror(why));
        if (!j->exit_code) j->exit_code = 1;
    }
}

static void run_to_the_end(job *j, struct pollfd *fds)
{
    uint64_t limit = j->options->limit_s > 0 ? later(j->options->limit_s) : UINT64_MAX;
    while (j->alive) {
        uint64_t until = j->exit_code || j->end_at_ns < limit ? j->end_at_ns : limit;
        wait_and_pass_on(j, fds, until);
        check_deadlines(j, limit);
    }
    /* What lies in the pipes is still to be shown; a process that left its group may hold one open. */
    uint64_t drained = later(DRAIN_S);
    while (any_pipe_open(j) && slc_clock_ns() < drained) wait_and_pass_on(j, fds, drained);
    note_lost_output(j);
}

sluice_status slc_launch(const slc_launch_options *options, int *exit_code)
{
    job j = {.options = options, .signals = -1, .end_at_ns = UINT64_MAX};
    struct pollfd *fds = calloc(1 + 2 * (size_t)options->ranks, sizeof *fds);
    j.ranks = calloc((size_t)options->ranks, sizeof *j.ranks);
    sluice_status status = SLUICE_OK;
    if (!fds || !j.ranks) {
        status = slc_error(SLUICE_ERR_MEMORY, "%d ranks", options->ranks);
        goto free_all;
    }
    for (int i = 0; i < options->ranks; i++) j.ranks[i].out.from = j.ranks[i].err.from = -1;

    status = choose_port(&j);
    if (!status) status = make_token(&j);
    if (!status) status = take_signals(&j);
    for (int i = 0; i < options->ranks && !status; i++) status = start_rank(&j, i);
    if (!status) status = start_guard(&j);
    if (status) signal_all(&j, SIGKILL);
    run_to_the_end(&j, fds);
    *exit_code = j.exit_code;

    end_guard(&j);
    if (j.signals >= 0) close(j.signals);
    sigprocmask(SIG_SETMASK, &j.before, NULL);
free_all:
    for (int i = 0; j.ranks && i < options->ranks; i++) {
        slc_prefix_fini(&j.ranks[i].out);
        slc_prefix_fini(&j.ranks[i].err);
    }
    free(j.ranks);
    free(fds);
    return status;
}
