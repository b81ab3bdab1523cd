/* `test_seconds NAME COMMAND...` runs the command of a test, and appends a line to the file that TEST_SECONDS names:
 * the test's name, and the seconds of a processor that the command and all processes that it waited for took, as user
 * and as system. It ends as the command ends, with its code or by its signal. Without TEST_SECONDS it becomes the
 * command. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t command_pid;

static void pass_on(int number)
{
    kill(command_pid, number);
}

static int become(char **command)
{
    execvp(command[0], command);
    fprintf(stderr, "test_seconds: %s: %s\n", command[0], strerror(errno));
    return 127;
}

static void note(const char *path, const char *name)
{
    struct rusage used;
    char line[512];
    getrusage(RUSAGE_CHILDREN, &used);
    int length = snprintf(line, sizeof line, "%s %ld.%06ld %ld.%06ld\n", name, (long)used.ru_utime.tv_sec,
                          (long)used.ru_utime.tv_usec, (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)length) != length)
        fprintf(stderr, "test_seconds: %s: %s\n", path, strerror(errno));
    if (fd >= 0) close(fd);
}

/* A terminal sends an interrupt to the command as well, which is what ends; other signals are sent to this process
 * alone and passed on. They wait until there is somebody to pass them to. */
static pid_t start(char **command)
{
    sigset_t passed, before;
    sigemptyset(&passed);
    sigaddset(&passed, SIGTERM);
    sigaddset(&passed, SIGHUP);
    sigprocmask(SIG_BLOCK, &passed, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("TEST_SECONDS"); /* a test that runs tests notes none of theirs */
        _exit(become(command));
    }
    command_pid = pid;
    if (pid > 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGTERM, pass_on);
        signal(SIGHUP, pass_on);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static int end_as(int status)
{
    const struct rlimit no_core = {0, 0};
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &no_core); /* the command has left its own */
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int main(int count, char **words)
{
    const char *path = getenv("TEST_SECONDS");
    int status;
    if (count < 3) {
        fprintf(stderr, "usage: test_seconds NAME COMMAND...\n");
        return 127;
    }
    if (!path || !*path) return become(words + 2);
    pid_t pid = start(words + 2);
    if (pid < 0) {
        fprintf(stderr, "test_seconds: fork: %s\n", strerror(errno));
        return 127;
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return 127;
    note(path, words[1]);
    return end_as(status);
}
