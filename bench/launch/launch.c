/* The local launcher. Each rank leads a process group of its own, so that what it starts ends with it; its output comes
 * through two pipes and leaves through queues, so that the one loop over pipes, signals and deadlines never waits for a
 * reader. Should the launcher itself be killed, a guard process sees it and ends the groups.
 * tests/launch/run_test.sh covers this file. */
#include "bench/launch/launch.h"

#include "bench/cli/command.h"
#include "bench/launch/guard.h"
#include "bench/launch/prefix.h"
#include "bench/launch/rank_ends.h"
#include "bench/launch/stop_signals.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/base/host/thread_limit.h"

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
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Once a rank has failed, the others have SPEAK_S to end, or SAVE_S if they were asked to stop before (they may be
 * saving), and TERMINATE_S after SIGTERM. Output may be stuck for STUCK_S while somebody waits for the end. */
static const double SPEAK_S = 3.0, SAVE_S = 30.0, TERMINATE_S = 2.0, STUCK_S = 1.0;

/* The ranks may move their time limit on while they run; the launcher looks at it this often. */
static const uint64_t RANKS_LIMIT_NS = 200000000;

enum { OWN_FILES = 16, OUTPUTS = 2, LEAVE_AT_INTERRUPT = 3 };

typedef struct {
    pid_t pid;                          /* also its process group; 0 once it is reaped */
    slc_prefix_stream streams[OUTPUTS]; /* standard output, standard error */
} rank_process;

typedef struct {
    slc_output_queue *queue;
    bool was_empty;
    uint64_t written, progress_ns; /* bytes written; the last time when nothing was stuck */
} output;

typedef struct {
    const slc_launch_options *options;
    rank_process *ranks;
    slc_rank_end *ends; /* of the ranks that failed */
    int failed, said;   /* how many; how many of them were told */
    struct pollfd *fds;
    slc_prefix_stream **polled; /* the streams of `fds`, after the launcher's own two */
    output outputs[OUTPUTS];
    int alive, turn;
    int signals, wake; /* signalfd; eventfd of the queues */
    slc_launch_guard guard;
    sigset_t taken, before;
    struct sigaction child_before; /* what SIGCHLD did */
    struct rlimit files_before;
    char port[16], token[33];
    int interrupts;          /* SIGINT, SIGTERM and SIGHUP so far */
    bool told_to_stop;       /* the ranks were told, by an interrupt or because nobody reads */
    bool reader_is_gone;     /* the reader of an output */
    bool limit_is_over;      /* options->limit_s */
    uint64_t ranks_limit_ns; /* the limit of options->limit_at_ns that was over; 0: none was */
    int exit_code;           /* that of the first failure */
    uint64_t limit_at_ns;    /* UINT64_MAX: never */
    uint64_t end_at_ns;      /* when survivors get SIGTERM; UINT64_MAX: not decided */
    bool terminated;         /* survivors got SIGTERM; SIGKILL is next */
} job;

static void say(const job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(const job *j, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length >= (int)sizeof line) length = sizeof line - 1;
    slc_output_queue_put_urgent_line(j->outputs[1].queue, "sluice run: ", line, length < 0 ? 0 : (size_t)length);
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
    const struct sigaction noticed = {.sa_handler = SIG_DFL};
    /* If a parent had this process ignore SIGCHLD, the kernel would reap the ranks, and their exit codes were lost. */
    sigaction(SIGCHLD, &noticed, &j->child_before);
    sigemptyset(&j->taken);
    const int which[] = {SIGCHLD, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) sigaddset(&j->taken, which[i]);
    if (!slc_signal_is_ignored(SIGHUP)) sigaddset(&j->taken, SIGHUP);
    sigprocmask(SIG_BLOCK, &j->taken, &j->before);
    j->signals = signalfd(-1, &j->taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return j->signals < 0 ? slc_error(SLUICE_ERR_SYSTEM, "signalfd: %s", strerror(errno)) : SLUICE_OK;
}

/* Raises the limit of this process. Ranks get the old one back, because programs that use select() rely on it. */
static sluice_status raise_file_limit(job *j)
{
    int piped = j->options->ranks - j->options->first_speaks;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return slc_error(SLUICE_ERR_SYSTEM, "open files: %s", strerror(errno));
    j->files_before = limit;
    rlim_t needed = (rlim_t)piped * OUTPUTS + OWN_FILES;
    if (limit.rlim_cur >= needed) return SLUICE_OK;
    if (limit.rlim_max < needed)
        return slc_error(SLUICE_ERR_SYSTEM,
                         "%d ranks need %llu open files and the hard limit is %llu: start fewer ranks or raise it "
                         "(ulimit -n, LimitNOFILE=)",
                         j->options->ranks, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit)) return slc_error(SLUICE_ERR_SYSTEM, "open files: %s", strerror(errno));
    return SLUICE_OK;
}

static sluice_status open_outputs(job *j)
{
    j->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (j->wake < 0) return slc_error(SLUICE_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    sluice_status status = slc_output_queue_create(STDOUT_FILENO, j->wake, &j->outputs[0].queue);
    return status ? status : slc_output_queue_create(STDERR_FILENO, j->wake, &j->outputs[1].queue);
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
    unsetenv(
        "TORCHELASTIC_USE_AGENT_STORE"); /* with it PyTorch would expect that someone else listens on MASTER_PORT */
}

/* Runs in the new process and does not return. `out` and `err`: -1 keeps the descriptor that it has. */
static void become_rank(const job *j, int rank, pid_t launcher, int out, int err)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(128 + SIGKILL); /* the launcher died before the line above */
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    if (out >= 0) dup2(out, STDOUT_FILENO);
    if (err >= 0) dup2(err, STDERR_FILENO);
    if (out < 0) signal(SIGTTOU, SIG_IGN); /* its group is not in the terminal's foreground and writes all the same */
    set_environment(j, rank);
    signal(SIGINT, SIG_DFL); /* a shell that starts us in the background makes us ignore it */
    setrlimit(RLIMIT_NOFILE, &j->files_before);
    sigprocmask(SIG_SETMASK, &j->before, NULL);
    execvp(j->options->command[0], j->options->command);
    int why = errno;
    fprintf(stderr, "sluice run: cannot run %s: %s\n", j->options->command[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

static sluice_status open_pipes(job *j, int rank, int ends[OUTPUTS][2])
{
    if (rank == 0 && j->options->first_speaks) return SLUICE_OK;
    for (int i = 0; i < OUTPUTS; i++) {
        if (pipe2(ends[i], O_CLOEXEC) ||
            fcntl(ends[i][0], F_SETFL, O_NONBLOCK)) /* the end that ranks write to blocks */
            return slc_error(SLUICE_ERR_SYSTEM, "rank %d: pipe: %s", rank, strerror(errno));
        sluice_status status = slc_prefix_init(&j->ranks[rank].streams[i], rank, ends[i][0], j->outputs[i].queue);
        if (status) return status;
        ends[i][0] = -1;
    }
    return SLUICE_OK;
}

static sluice_status start_rank(job *j, int rank)
{
    int ends[OUTPUTS][2] = {{-1, -1}, {-1, -1}};
    pid_t pid, launcher = getpid();
    sluice_status status = open_pipes(j, rank, ends);
    if (status) goto close_all;
    pid = fork();
    if (pid < 0) {
        char what[32];
        snprintf(what, sizeof what, "rank %d: fork", rank);
        status = slc_thread_limit_error(errno, what);
        goto close_all;
    }
    if (pid == 0) become_rank(j, rank, launcher, ends[0][1], ends[1][1]);
    setpgid(pid, pid); /* the rank does it too: whoever comes first, no signal to the group misses it */
    j->ranks[rank].pid = pid;
    j->alive++;

close_all:
    for (int i = 0; i < OUTPUTS; i++)
        for (int end = 0; end < 2; end++)
            if (ends[i][end] >= 0) close(ends[i][end]);
    return status;
}

static void signal_all(const job *j, int signal)
{
    for (int i = 0; i < j->options->ranks; i++)
        if (j->ranks[i].pid > 0) kill(-j->ranks[i].pid, signal);
}

static sluice_status start_guard(job *j)
{
    pid_t *groups = malloc((size_t)j->options->ranks * sizeof *groups);
    if (!groups) return slc_error(SLUICE_ERR_MEMORY, "%d ranks", j->options->ranks);
    for (int i = 0; i < j->options->ranks; i++) groups[i] = j->ranks[i].pid;
    sluice_status status = slc_launch_guard_start(groups, j->options->ranks, &j->guard);
    free(groups);
    return status;
}

static sluice_status start_job(job *j)
{
    sluice_status status = choose_port(j);
    if (!status) status = make_token(j);
    if (!status) status = raise_file_limit(j);
    for (int i = 0; i < j->options->ranks && !status; i++) status = start_rank(j, i);
    if (!status) status = start_guard(j);
    /* From here on there are threads, and nothing is forked any more. */
    for (int i = 0; i < OUTPUTS; i++) {
        sluice_status started = slc_output_queue_start(j->outputs[i].queue);
        if (!status) status = started;
        j->outputs[i].was_empty = true;
    }
    return status;
}

/* ---- While they run ---- */

static uint64_t later(double seconds)
{
    return slc_clock_ns() + (uint64_t)(seconds * 1e9);
}

/* Notes how a rank ended. If nobody knows how, `info` has no code. */
static void note_end(job *j, int rank, const siginfo_t *info)
{
    const bool unknown = !info->si_code, killed = !unknown && info->si_code != CLD_EXITED;
    const int number = unknown ? SLC_END_UNKNOWN : info->si_status;
    const int code = unknown ? EXIT_FAILED : killed ? 128 + number : number;
    if (!code) return;
    if (!j->exit_code) j->exit_code = code;
    if (j->end_at_ns == UINT64_MAX) j->end_at_ns = later(j->told_to_stop ? SAVE_S : SPEAK_S);
    j->ends[rank] = (slc_rank_end){++j->failed, killed, number};
}

/* Reaps processes that are not ours. The first process of a container inherits the children that other processes leave
 * behind, and has to reap them. */
static void reap_strangers(const job *j)
{
    siginfo_t info = {0};
    while (getpid() == 1 && !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        for (int i = 0; i < j->options->ranks; i++)
            if (j->ranks[i].pid == info.si_pid) return; /* its turn comes */
        waitpid(info.si_pid, NULL, 0);
        info = (siginfo_t){0};
    }
}

/* Reaps a rank that has ended. It is looked at first, because until it is reaped no other group can get its number. */
static void reap_rank(job *j, int rank, bool only_killed)
{
    const pid_t pid = j->ranks[rank].pid;
    siginfo_t info = {0};
    if (!pid) return;
    const int failed = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (failed && errno == ECHILD) /* somebody else reaped it, and nobody knows its code any more */
        info = (siginfo_t){.si_pid = pid};
    const bool killed = info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
    if (!info.si_pid || (only_killed && !killed)) return;
    kill(-pid, SIGKILL);
    slc_launch_guard_forget(&j->guard, rank);
    waitpid(pid, NULL, 0);
    j->ranks[rank].pid = 0;
    j->alive--;
    note_end(j, rank, &info);
}

/* Reaps the ranks that have ended since the last look, those that were killed first: the others only failed because
 * they heard of their end. */
static void reap(job *j)
{
    for (int i = 0; i < j->options->ranks; i++) reap_rank(j, i, true);
    for (int i = 0; i < j->options->ranks; i++) reap_rank(j, i, false);
    reap_strangers(j);
}

static void take_interrupt(job *j, int signal)
{
    const char *name = strsignal(signal);
    if (j->interrupts++) {
        say(j, "%s again: killing the ranks", name);
        signal_all(j, SIGKILL);
    } else if (!j->alive) {
        say(j, "%s: output that nobody reads is given up", name);
    } else if (j->told_to_stop) { /* a second signal would make them give up saving */
        say(j, "%s: the ranks are stopping already; once more kills them", name);
    } else {
        say(j, "%s: handed to the ranks; once more kills them", name);
        signal_all(j, signal);
    }
    j->told_to_stop = true;
}

static void read_signals(job *j)
{
    struct signalfd_siginfo info;
    while (read(j->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) take_interrupt(j, (int)info.ssi_signo);
    reap(j);
}

/* Returns true if the rank ended as it was meant to: after Ctrl-C, or because its job's time was nearly over, if rank 0
 * speaks for itself. */
static bool is_as_asked(const job *j, const slc_rank_end *end)
{
    if (end->killed) return false;
    if (end->number == EXIT_OUT_OF_TIME) return j->options->first_speaks;
    return end->number == EXIT_INTERRUPTED && j->told_to_stop;
}

/* Says how the ranks ended that failed, in one line. Ranks that did as they were asked need no line. */
static void say_ends(job *j, const char *then)
{
    char line[768];
    bool asked = true;
    for (int i = 0; i < j->options->ranks; i++) asked &= !j->ends[i].place || is_as_asked(j, &j->ends[i]);
    if (slc_rank_ends_line(j->ends, j->options->ranks, j->said, line, sizeof line) && !asked)
        say(j, "%s%s", line, then);
    j->said = j->failed;
}

/* Ends the job if the ranks have not moved their own limit on in time. */
static void check_ranks_limit(job *j, uint64_t now)
{
    uint64_t limit = j->options->limit_at_ns ? atomic_load(j->options->limit_at_ns) : 0;
    if (!limit || now < limit || j->ranks_limit_ns || !j->alive) return;
    j->ranks_limit_ns = limit;
    if (!j->exit_code) j->exit_code = 124;
    if (!j->terminated) j->end_at_ns = now;
}

static void check_deadlines(job *j)
{
    uint64_t now = slc_clock_ns();
    check_ranks_limit(j, now);
    if (now >= j->limit_at_ns && !j->limit_is_over) {
        say(j, "the time limit of %g s is over", j->options->limit_s);
        j->limit_is_over = true;
        if (!j->exit_code) j->exit_code = 124;
        if (!j->terminated) j->end_at_ns = now;
    }
    if (now < j->end_at_ns || !j->alive) return;
    if (j->failed && !j->told_to_stop && !j->terminated) say_ends(j, "; the other ranks are told to end");
    signal_all(j, j->terminated ? SIGKILL : SIGTERM);
    j->end_at_ns = later(TERMINATE_S);
    j->terminated = true;
}

/* ---- Their output ---- */

/* Returns true if somebody waits for the end of the job. Then the job does not wait for a reader any more. */
static bool is_hurried(const job *j)
{
    return j->interrupts || j->limit_is_over;
}

/* Looks whether the reader of an output has gone. A reader such as `| head -1` has then seen enough: the ranks are told
 * to stop by SIGTERM, and can save. */
static void check_reader(job *j, int which)
{
    if (j->reader_is_gone || slc_output_queue_lost(j->outputs[which].queue) != EPIPE) return;
    j->reader_is_gone = true;
    if (!j->alive || j->told_to_stop) return;
    if (!j->exit_code) j->exit_code = 128 + SIGPIPE;
    say(j, "nobody reads %s any more: the ranks are told to stop (SIGTERM)", which ? "standard error" : "the output");
    signal_all(j, SIGTERM);
    j->told_to_stop = true;
}

/* Returns true if nobody has taken the output that there is for STUCK_S. */
static bool is_stuck(output *out)
{
    uint64_t now = slc_clock_ns(), written = slc_output_queue_written(out->queue);
    bool empty = slc_output_queue_is_empty(out->queue);
    if (empty || out->was_empty || written != out->written) out->progress_ns = now;
    out->was_empty = empty;
    out->written = written;
    return now - out->progress_ns >= (uint64_t)(STUCK_S * 1e9);
}

/* Lets go of the outputs that are stuck when the ranks are to end, because ranks must not wait for a reader then. */
static void check_outputs(job *j)
{
    for (int i = 0; i < OUTPUTS; i++) {
        check_reader(j, i);
        if (is_stuck(&j->outputs[i]) && is_hurried(j)) slc_output_queue_let_go(j->outputs[i].queue);
    }
}

static int poll_timeout_ms(const job *j)
{
    uint64_t now = slc_clock_ns();
    uint64_t until_ns = j->alive && j->end_at_ns < UINT64_MAX ? j->end_at_ns : UINT64_MAX;
    if (!j->limit_is_over && j->limit_at_ns < until_ns) until_ns = j->limit_at_ns;
    for (int i = 0; i < OUTPUTS && is_hurried(j); i++) /* is_stuck has to be asked again */
        if (!slc_output_queue_is_empty(j->outputs[i].queue) && until_ns > now + 100000000u) until_ns = now + 100000000u;
    if (j->options->limit_at_ns && j->alive && until_ns > now + RANKS_LIMIT_NS) until_ns = now + RANKS_LIMIT_NS;
    if (until_ns == UINT64_MAX) return -1;
    uint64_t left_ms = until_ns > now ? (until_ns - now) / 1000000u + 1 : 0;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

/* Returns the number of descriptors to wait for; the launcher's own two come first. */
static nfds_t gather_descriptors(job *j)
{
    nfds_t count = 0;
    j->fds[count++] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    j->fds[count++] = (struct pollfd){.fd = j->wake, .events = POLLIN};
    for (int i = 0; i < j->options->ranks * OUTPUTS; i++) {
        slc_prefix_stream *stream = &j->ranks[i / OUTPUTS].streams[i % OUTPUTS];
        if (!slc_prefix_wants_input(stream)) continue;
        j->polled[count] = stream;
        j->fds[count++] = (struct pollfd){.fd = stream->from, .events = POLLIN};
    }
    return count;
}

/* Each round begins with another rank, so that one that writes much does not take all the room. */
static void pass_on(job *j, nfds_t count)
{
    int streams = j->options->ranks * OUTPUTS;
    j->turn = (j->turn + 1) % streams;
    for (int i = 0; i < streams; i++) {
        int at = (i + j->turn) % streams;
        slc_prefix_stream *stream = &j->ranks[at / OUTPUTS].streams[at % OUTPUTS];
        if (!slc_prefix_wants_input(stream)) slc_prefix_pass_on(stream); /* its lines may have room now */
    }
    for (nfds_t i = 2; i < count; i++) {
        nfds_t at = 2 + (i + (nfds_t)j->turn) % (count - 2);
        if (j->fds[at].revents) slc_prefix_pass_on(j->polled[at]);
    }
}

/* One round: waits for output, room, a signal or a deadline. If the kernel has no memory for poll, it is asked
 * again soon; signals and deadlines are served meanwhile. */
static void wait_and_pass_on(job *j)
{
    uint64_t wakes;
    nfds_t count = gather_descriptors(j);
    int ready = poll(j->fds, count, poll_timeout_ms(j));
    if (ready < 0) {
        const struct timespec soon = {.tv_nsec = 20000000};
        if (errno != EINTR) nanosleep(&soon, NULL);
        count = 2;
    }
    if (ready < 0 || j->fds[1].revents)
        while (read(j->wake, &wakes, sizeof wakes) > 0) continue;
    pass_on(j, count);
    if (ready < 0 || j->fds[0].revents) read_signals(j);
    check_deadlines(j);
    check_outputs(j);
}

static bool all_is_said(const job *j)
{
    for (int i = 0; i < j->options->ranks * OUTPUTS; i++)
        if (!slc_prefix_is_at_end(&j->ranks[i / OUTPUTS].streams[i % OUTPUTS])) return false;
    for (int i = 0; i < OUTPUTS; i++)
        if (!slc_output_queue_is_empty(j->outputs[i].queue)) return false;
    return true;
}

/* Returns true if all output that is still to be written is stuck, and somebody waits for the end of the job. */
static bool nobody_reads(job *j)
{
    bool stuck = false;
    for (int i = 0; i < OUTPUTS; i++) {
        bool this_one = is_stuck(&j->outputs[i]);
        if (!this_one && !slc_output_queue_is_empty(j->outputs[i].queue)) return false;
        stuck |= this_one;
    }
    return stuck && is_hurried(j);
}

/* Writes what is left. Like any program the launcher waits for its reader, unless somebody waits for the end of the
 * job. */
static void drain(job *j)
{
    int interrupts = j->interrupts;
    while (!all_is_said(j) && !nobody_reads(j) && (j->interrupts == interrupts || j->interrupts < 2))
        wait_and_pass_on(j);
}

static void note_lost_output(job *j)
{
    static const char *const names[] = {"output", "standard error"};
    for (int i = 0; i < OUTPUTS; i++) {
        int why = slc_output_queue_lost(j->outputs[i].queue);
        if (!why && slc_output_queue_is_empty(j->outputs[i].queue)) continue;
        if (!j->exit_code) j->exit_code = why == EPIPE ? 128 + SIGPIPE : 1;
        if (!why || why == ETIMEDOUT)
            say(j, "%s of the ranks was lost: nobody read it", names[i]);
        else
            say(j, "%s of the ranks was lost: %s", names[i], strerror(why));
    }
}

/* ---- The whole ---- */

static void run_to_the_end(job *j)
{
    if (j->options->limit_s > 0) j->limit_at_ns = later(j->options->limit_s);
    while (j->alive && j->interrupts < LEAVE_AT_INTERRUPT) wait_and_pass_on(j);
    if (j->alive && !j->exit_code) j->exit_code = 128 + SIGKILL; /* even SIGKILL did not end them */
    if (j->failed > j->said) say_ends(j, "");
    for (int i = 0; i < j->options->ranks * OUTPUTS; i++)
        slc_prefix_limit_to_what_is_there(&j->ranks[i / OUTPUTS].streams[i % OUTPUTS]);
    drain(j);
    note_lost_output(j);
    drain(j);
}

static sluice_status open_job(job *j)
{
    size_t ranks = (size_t)j->options->ranks;
    j->ranks = calloc(ranks, sizeof *j->ranks);
    j->fds = calloc(2 + OUTPUTS * ranks, sizeof *j->fds);
    j->polled = calloc(2 + OUTPUTS * ranks, sizeof *j->polled);
    j->ends = calloc(ranks, sizeof *j->ends);
    if (!j->ranks || !j->fds || !j->polled || !j->ends)
        return slc_error(SLUICE_ERR_MEMORY, "%d ranks", j->options->ranks);
    for (int i = 0; i < j->options->ranks * OUTPUTS; i++) j->ranks[i / OUTPUTS].streams[i % OUTPUTS].from = -1;
    sluice_status status = open_outputs(j);
    return status ? status : take_signals(j);
}

static void close_job(job *j)
{
    slc_launch_guard_end(&j->guard);
    for (int i = 0; j->ranks && i < j->options->ranks * OUTPUTS; i++)
        slc_prefix_fini(&j->ranks[i / OUTPUTS].streams[i % OUTPUTS]);
    for (int i = 0; i < OUTPUTS; i++) slc_output_queue_destroy(j->outputs[i].queue);
    if (j->wake >= 0) close(j->wake);
    if (j->signals >= 0) close(j->signals);
    free(j->polled);
    free(j->fds);
    free(j->ranks);
    free(j->ends);
}

static void tell_end(const job *j, slc_launch_end *end)
{
    *end = (slc_launch_end){.told_to_stop = j->told_to_stop, .limit_ns = j->ranks_limit_ns};
    if (j->ends) slc_rank_ends_line(j->ends, j->options->ranks, 0, end->failures, sizeof end->failures);
}

sluice_status slc_launch(const slc_launch_options *options, int *exit_code)
{
    job j = {.options = options,
             .signals = -1,
             .wake = -1,
             .guard = {.pipe = -1},
             .limit_at_ns = UINT64_MAX,
             .end_at_ns = UINT64_MAX};
    sigprocmask(SIG_SETMASK, NULL, &j.before);
    sigaction(SIGCHLD, NULL, &j.child_before);
    getrlimit(RLIMIT_NOFILE, &j.files_before);
    sluice_status status = open_job(&j);
    if (!status) {
        status = start_job(&j);
        if (status) signal_all(&j, SIGKILL);
        run_to_the_end(&j);
    }
    *exit_code = j.exit_code;
    if (options->end) tell_end(&j, options->end);
    close_job(&j);
    setrlimit(RLIMIT_NOFILE, &j.files_before);
    sigprocmask(SIG_SETMASK, &j.before, NULL);
    sigaction(SIGCHLD, &j.child_before, NULL);
    return status;
}
