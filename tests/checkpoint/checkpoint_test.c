/* Every value and every optimizer state has the same bits after a checkpoint, whatever world and strategies saved
 * it, whatever world and strategies load it, and whatever precision either runs in. A checkpoint that is not whole
 * or not of this model is refused by name and changes nothing. Ranks that are killed while they save leave the last
 * whole checkpoint.
 *
 * checkpoint_test [PATTERN [MANY]] runs the tests whose name matches, with that many kills or worlds (`./dev
 * stress`). */
#include "tests/checkpoint/checkpoint_model.h"
#include "tests/checkpoint/disk_recorder.h"
#include "tests/support/seed.h"

static const char extra_text[] = "what the binary\0keeps";

static uint32_t asked; /* kills or worlds, as the command line says; 0: a test's own number */

/* ---- As ranks ---- */

static int save(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    if (build(&m) || fill(&m, m.t->step)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m.rt, m.t->dir, extra_text, sizeof extra_text));
    return destroy(&m, check(&m, m.t->step));
}

static int load(int rank, int size, void *context)
{
    (void)rank, (void)size;
    const uint64_t before = 99;
    model m = {.t = context};
    void *extra = NULL;
    size_t extra_bytes = 0;
    if (build(&m)) return 1;
    bool comparable = m.t->change == AS_IT_IS;
    if (comparable && fill(&m, before)) return 1;
    sluice_status status = sluice_checkpoint_load(m.rt, m.t->dir, &extra, &extra_bytes);
    if (m.t->refused) {
        RANK_CHECK(status == SLUICE_ERR_FORMAT || status == SLUICE_ERR_PATH);
        RANK_CHECK(strstr(sluice_last_error(), m.t->refused));
    }
    if (status) {
        RANK_CHECK(m.t->refused);
        return destroy(&m, comparable ? check(&m, before) : 0);
    }
    RANK_CHECK(extra_bytes == sizeof extra_text && !memcmp(extra, extra_text, extra_bytes));
    free(extra);
    return destroy(&m, check(&m, m.t->step));
}

/* Saves step after step until it is killed. */
static int save_on_and_on(int rank, int size, void *context)
{
    (void)size;
    model m = {.t = context};
    if (build(&m)) return 1;
    for (uint64_t step = m.t->step + 1;; step++) {
        if (fill(&m, step)) return 1;
        RANK_CHECK(!sluice_checkpoint_save(m.rt, m.t->dir, extra_text, sizeof extra_text));
        if (rank == 0) *m.t->reached = step;
    }
}

/* ---- Any world to any world ---- */

static void every_world_reads_every_other(void **state)
{
    (void)state;
    char dir[64];
    make_folder(dir);
    uint32_t rounds = asked ? asked : test_rounds(1);
    uint64_t step = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int from = 1; from <= 4; from++) {
            trial t = {.dir = dir, .seed = 100 * round + (uint64_t)from, .step = ++step};
            assert_int_equal(run_ranks(from, save, &t, 120), 0);
            for (int to = 1; to <= 4; to++) {
                t.seed = 1000 + 100 * round + 10 * (uint64_t)from + (uint64_t)to;
                if (run_ranks(to, load, &t, 120)) fail_msg("from %d ranks to %d, round %u", from, to, round);
            }
            assert_int_equal(entries(dir), step < 2 ? 1 : 2); /* the last two checkpoints are kept, and nothing else */
        }
    remove_all(dir);
}

static int save_twice(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    if (build(&m) || fill(&m, m.t->step + 1)) return 1;
    RANK_CHECK(!sluice_runtime_step_set(m.rt, m.t->step));
    RANK_CHECK(!sluice_checkpoint_save(m.rt, m.t->dir, NULL, 0));
    if (fill(&m, m.t->step)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m.rt, m.t->dir, extra_text, sizeof extra_text));
    return destroy(&m, 0);
}

static void a_step_saved_again_is_replaced(void **state)
{
    (void)state;
    char dir[64], one[128];
    make_folder(dir);
    trial t = {.dir = dir, .seed = 6, .step = 1234567};
    assert_int_equal(run_ranks(2, save_twice, &t, 60), 0);
    assert_int_equal(entries(dir), 1);
    snprintf(one, sizeof one, "%s/step-1234567", dir);
    t = (trial){.dir = one, .seed = 7, .step = 1234567}; /* loads from the folder of this one checkpoint */
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    remove_all(dir);
}

/* ---- Refusals ---- */

static void other_models_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        model_change change;
        const char *words;
    } cases[] = {
        {ONE_LESS, "holds a parameter \"h.2.bias\" that this model does not have"},
        {ONE_MORE, "lacks the parameter \"h.1.more\""},
        {OTHER_COUNT, "parameter \"h.2.bias\" has 640 elements, in this model 641"},
        {OTHER_NAME, "holds a parameter \"h.2.bias\""},
        {OTHER_FROZEN, "parameter \"h.2.bias\" was trained, in this model it is frozen"},
        {OTHER_OPTIMIZER, "was saved by optimizer adamw"},
    };
    char dir[64];
    make_folder(dir);
    trial t = {.dir = dir, .seed = 5, .refused = "there is no checkpoint in "};
    assert_int_equal(run_ranks(2, load, &t, 60), 0);
    t = (trial){.dir = dir, .seed = 5, .step = 3};
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t = (trial){.dir = dir, .seed = i, .change = cases[i].change, .refused = cases[i].words};
        assert_int_equal(run_ranks(1 + (int)i % 2, load, &t, 60), 0);
    }
    remove_all(dir);
}

static void read_file(const char *path, char **bytes, size_t *size)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    *size = (size_t)info.st_size;
    *bytes = malloc(*size + 1);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(*bytes, 1, *size, file), *size);
    fclose(file);
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file that was cut, lengthened, or has a bit turned over is refused, and nothing changes. */
static void damage_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"rank-0000.slc", "rank-0001.slc", "extra", "manifest.json"};
    char dir[64], path[128];
    make_folder(dir);
    trial t = {.dir = dir, .seed = 8, .step = 12};
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    uint32_t rounds = test_rounds(24);
    for (uint32_t round = 0; round < rounds; round++) {
        char *bytes;
        size_t size;
        snprintf(path, sizeof path, "%s/step-000012/%s", dir, names[round % 4]);
        read_file(path, &bytes, &size);
        size_t at = slc_random_below(test_seed(7), 0, round, size), kind = round / 4 % 3;
        char kept = bytes[at];
        if (kind == 0) bytes[at] ^= (char)(1 << round % 8);
        bytes[size] = ' ';
        write_file(path, bytes, kind == 1 ? at : kind == 2 ? size + 1 : size);
        bytes[at] = kept;
        t = (trial){.dir = dir, .seed = round, .step = 12, .refused = names[round % 4]};
        if (run_ranks(1 + (int)(round % 3), load, &t, 60)) fail_msg("%s, byte %zu, kind %zu", path, at, kind);
        write_file(path, bytes, size);
        free(bytes);
    }
    snprintf(path, sizeof path, "%s/step-000012/rank-0001.slc", dir);
    t = (trial){.dir = dir, .seed = 1, .step = 12};
    assert_int_equal(run_ranks(3, load, &t, 60), 0); /* everything is as it was */
    assert_int_equal(unlink(path), 0);
    t.refused = "rank-0001.slc";
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    remove_all(dir);
}

/* `sluice_checkpoint_extra` reads the manifest as loading does, without ranks. */
static void check_refused(const char *dir, const char *name, const char *what, size_t at)
{
    void *extra = NULL;
    size_t bytes;
    sluice_status status = sluice_checkpoint_extra(dir, &extra, &bytes);
    if (!status || !strstr(sluice_last_error(), name))
        fail_msg("%s at %zu: %s", what, at, status ? sluice_last_error() : "taken");
}

static void all_bytes_of_a_manifest_count(void **state)
{
    (void)state;
    char dir[64], path[128], *bytes;
    size_t size;
    make_folder(dir);
    trial t = {.dir = dir, .seed = 8, .step = 12};
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    snprintf(path, sizeof path, "%s/step-000012/manifest.json", dir);
    read_file(path, &bytes, &size);
    for (size_t at = 0; at < size; at++) {
        char kept = bytes[at];
        bool digit = kept >= '0' && kept <= '9';
        bytes[at] = digit ? (char)('0' + (kept - '0' + 1 + (char)(at % 9)) % 10) : (char)(kept ^ 1);
        write_file(path, bytes, size);
        check_refused(dir, "manifest.json", "another byte", at);
        bytes[at] = kept;
        write_file(path, bytes, at);
        check_refused(dir, "manifest.json", "cut", at);
    }
    write_file(path, bytes, size);
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    free(bytes);
    remove_all(dir);
}

/* Anything that is not a file must be refused: a pipe would be waited for, a device read for ever. */
static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"manifest.json", "extra", "rank-0001.slc"};
    char dir[64], path[128];
    make_folder(dir);
    trial t = {.dir = dir, .seed = 8, .step = 12};
    for (int kind = 0; kind < 3; kind++)
        for (int n = 0; n < 3; n++) {
            t.refused = NULL;
            assert_int_equal(run_ranks(2, save, &t, 60), 0);
            snprintf(path, sizeof path, "%s/step-000012/%s", dir, names[n]);
            assert_int_equal(unlink(path), 0);
            int code = kind == 0 ? mkfifo(path, 0666) : kind == 1 ? mkdir(path, 0777) : symlink("/dev/zero", path);
            assert_int_equal(code, 0);
            t.refused = names[n];
            assert_int_equal(run_ranks(2, load, &t, 60), 0);
            remove_all(path);
        }
    remove_all(dir);
}

/* ---- Leftovers that cannot be removed ---- */

/* There is a user's folder in a checkpoint, another in the leftovers of a crash, and a link in the place of such
 * leftovers. */
static void what_cannot_be_removed_stays(void **state)
{
    (void)state;
    char dir[64], other[64], path[128], kept[128];
    make_folder(dir);
    make_folder(other);
    trial t = {.dir = dir, .seed = 2, .step = 1};
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    snprintf(path, sizeof path, "%s/step-000001/notes", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/step-000003.partial", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/step-000003.partial/notes", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(kept, sizeof kept, "%s/kept", other);
    write_file(kept, "x", 1);
    snprintf(path, sizeof path, "%s/step-000009.partial", dir);
    assert_int_equal(symlink(other, path), 0);
    for (t.step = 2; t.step <= 5; t.step++) {
        assert_int_equal(run_ranks(2, save, &t, 60), 0);
        assert_int_equal(run_ranks(1, load, &t, 60), 0);
    }
    unsetenv("SLUICE_LOG_LEVEL");
    assert_int_equal(access(kept, F_OK), 0);     /* nothing that the link leads to is touched */
    assert_int_not_equal(access(path, F_OK), 0); /* the link itself goes */
    assert_int_equal(entries(dir), 2 + 2);       /* the last two, and the user's two folders */
    snprintf(path, sizeof path, "%s/step-000001.partial/notes", dir);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/step-000003.partial/notes", dir);
    assert_int_equal(access(path, F_OK), 0);
    remove_all(dir);
    remove_all(other);
}

/* ---- Two jobs ---- */

static int save_and_stay(int rank, int size, void *context)
{
    (void)size, (void)rank;
    model m = {.t = context};
    if (build(&m) || fill(&m, m.t->step)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m.rt, m.t->dir, extra_text, sizeof extra_text));
    *m.t->reached = (uint64_t)getpid();
    for (;;) pause();
}

static int save_where_another_does(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    char host[64] = "", process[32];
    gethostname(host, sizeof host - 1);
    snprintf(process, sizeof process, "process %llu,", (unsigned long long)*m.t->reached);
    if (build(&m) || fill(&m, m.t->step)) return 1;
    RANK_CHECK(sluice_checkpoint_save(m.rt, m.t->dir, NULL, 0) == SLUICE_ERR_IO);
    RANK_CHECK(strstr(sluice_last_error(), "another job saves to") && strstr(sluice_last_error(), host));
    RANK_CHECK(strstr(sluice_last_error(), process) && strstr(sluice_last_error(), "since 20"));
    return destroy(&m, 0);
}

static void two_jobs_do_not_share_a_folder(void **state)
{
    (void)state;
    char dir[64];
    make_folder(dir);
    uint64_t *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(reached, MAP_FAILED);
    trial t = {.dir = dir, .seed = 3, .step = 7, .reached = reached};
    int port = free_port();
    fflush(NULL);
    pid_t holder = fork();
    if (!holder) {
        become_rank(0, 1, port);
        _exit(save_and_stay(0, 1, &t));
    }
    for (int ms = 0; !*reached && ms < 60000; ms++) wait_ms(1);
    assert_true(*reached);
    trial second = {.dir = dir, .seed = 4, .step = 8, .reached = reached};
    assert_int_equal(run_ranks(2, save_where_another_does, &second, 60), 0);
    assert_int_equal(run_ranks(2, load, &t, 60), 0); /* everybody may read */
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    assert_int_equal(run_ranks(2, save, &second, 60), 0); /* a lock ends with the process that holds it */
    assert_int_equal(entries(dir), 2);
    munmap(reached, sizeof *reached);
    remove_all(dir);
}

static int save_where_it_cannot(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    if (build(&m) || fill(&m, 4)) return 1;
    RANK_CHECK(sluice_checkpoint_save(m.rt, "/proc/nowhere/at/all", NULL, 0) == SLUICE_ERR_PATH);
    RANK_CHECK(strstr(sluice_last_error(), "/proc/nowhere"));
    RANK_CHECK(sluice_checkpoint_save(m.rt, "", NULL, 0) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_evaluate_begin(m.rt));
    RANK_CHECK(sluice_checkpoint_save(m.rt, m.t->dir, NULL, 0) == SLUICE_ERR_ORDER);
    RANK_CHECK(!sluice_evaluate_end(m.rt));
    return destroy(&m, 0);
}

static void what_cannot_be_written_is_named(void **state)
{
    (void)state;
    char dir[64];
    make_folder(dir);
    trial t = {.dir = dir, .seed = 4};
    assert_int_equal(run_ranks(2, save_where_it_cannot, &t, 60), 0);
    assert_int_equal(entries(dir), 0);
    remove_all(dir);
}

/* ---- Killed at any moment ---- */

static bool has_partial(const char *dir)
{
    bool found = false;
    DIR *open = opendir(dir);
    for (const struct dirent *entry; open && (entry = readdir(open));)
        found |= strstr(entry->d_name, ".partial") != NULL;
    if (open) closedir(open);
    return found;
}

static void start(pid_t *children, int size, trial *t)
{
    int port = free_port();
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        children[r] = fork();
        if (children[r]) continue;
        become_rank(r, size, port);
        disk_rank = r;
        _exit(save_on_and_on(r, size, t));
    }
}

/* In even rounds one rank is killed at one of its calls to the disk: in round 0 at its first write, where something is
 * half done for sure, later at a drawn call. In odd rounds all ranks are killed after a drawn time. */
static void kill_while_saving(uint32_t round, const trial *t, const uint64_t *reached)
{
    enum { SIZE = 2 };
    pid_t children[SIZE];
    uint64_t begun = *reached;
    disk_watch(t->dir, false);
    start(children, SIZE, (trial *)t);
    for (int ms = 0; *reached < begun + 1 + round % 2 && ms < 60000; ms++) wait_ms(1);
    if (round % 2 == 0) {
        int victim = round ? (int)slc_random_below(test_seed(2), 1, round, SIZE) : 1;
        disk_fault(victim, round ? (uint32_t)slc_random_below(test_seed(2), 2, round, 60) : 2, 0);
        for (int ms = 0; !disk->fired && ms < 60000; ms++) wait_ms(1);
        assert_true(disk->fired);
    } else {
        wait_ms((long)slc_random_below(test_seed(2), 0, round, 40));
    }
    for (int r = 0; r < SIZE; r++) kill(children[(r + (int)round) % SIZE], SIGKILL);
    for (int r = 0; r < SIZE; r++) waitpid(children[r], NULL, 0);
    disk->folder[0] = 0;
    disk->fault_rank = -1;
}

static void kills_lose_no_checkpoint(void **state)
{
    (void)state;
    char dir[64];
    make_folder(dir);
    uint64_t *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(reached, MAP_FAILED);
    uint32_t many = asked ? asked : test_rounds(10), half_done = 0;
    uint64_t last = 0;
    for (uint32_t i = 0; i < many; i++) {
        trial t = {.dir = dir, .seed = i, .step = last, .reached = reached};
        kill_while_saving(i, &t, reached);
        bool found = false;
        assert_int_equal(sluice_checkpoint_latest(dir, &found, &last), SLUICE_OK);
        assert_true(found && last >= *reached && last <= *reached + 1);
        half_done += has_partial(dir) || last > *reached;
        t = (trial){.dir = dir, .seed = i, .step = last};
        assert_int_equal(run_ranks(1 + (int)(i % 3), load, &t, 60), 0);
    }
    print_message("%u kills, %u of them while a checkpoint was half done\n", many, half_done);
    assert_true(half_done > 0);
    munmap(reached, sizeof *reached);
    remove_all(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_world_reads_every_other),    cmocka_unit_test(a_step_saved_again_is_replaced),
        cmocka_unit_test(other_models_are_refused_by_name), cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(all_bytes_of_a_manifest_count),    cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_named),  cmocka_unit_test(what_cannot_be_removed_stays),
        cmocka_unit_test(two_jobs_do_not_share_a_folder),   cmocka_unit_test(kills_lose_no_checkpoint),
    };
    disk_open();
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) asked = (uint32_t)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
