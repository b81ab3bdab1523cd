/* Every value and every optimizer state has the same bits after a checkpoint, whatever world and strategies saved
 * it, whatever world and strategies load it, and whatever precision either runs in. A checkpoint that is not whole
 * or not of this model is refused by name and changes nothing. Ranks that are killed while they save leave the last
 * whole checkpoint.
 *
 * checkpoint_test [PATTERN [MANY]] runs the tests whose name matches, with that many kills or worlds (`./dev
 * stress`). */
#include "tests/checkpoint/checkpoint_model.h"
#include "tests/support/base/disk_recorder.h"
#include "tests/support/seed.h"

#include "lib/base/hash/crc32c.h"

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
    make_own_folder(dir);
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
    remove_tree(dir);
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
    make_own_folder(dir);
    trial t = {.dir = dir, .seed = 6, .step = 1234567};
    assert_int_equal(run_ranks(2, save_twice, &t, 60), 0);
    assert_int_equal(entries(dir), 1);
    snprintf(one, sizeof one, "%s/step-1234567", dir);
    t = (trial){.dir = one, .seed = 7, .step = 1234567}; /* loads from the folder of this one checkpoint */
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    remove_tree(dir);
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
    make_own_folder(dir);
    trial t = {.dir = dir, .seed = 5, .refused = "there is no checkpoint in "};
    assert_int_equal(run_ranks(2, load, &t, 60), 0);
    t = (trial){.dir = dir, .seed = 5, .step = 3};
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        t = (trial){.dir = dir, .seed = i, .change = cases[i].change, .refused = cases[i].words};
        assert_int_equal(run_ranks(1 + (int)i % 2, load, &t, 60), 0);
    }
    remove_tree(dir);
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

static void write_content(const char *path, const char *bytes, size_t size)
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
    make_own_folder(dir);
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
        write_content(path, bytes, kind == 1 ? at : kind == 2 ? size + 1 : size);
        bytes[at] = kept;
        t = (trial){.dir = dir, .seed = round, .step = 12, .refused = names[round % 4]};
        if (run_ranks(1 + (int)(round % 3), load, &t, 60)) fail_msg("%s, byte %zu, kind %zu", path, at, kind);
        write_content(path, bytes, size);
        free(bytes);
    }
    snprintf(path, sizeof path, "%s/step-000012/rank-0001.slc", dir);
    t = (trial){.dir = dir, .seed = 1, .step = 12};
    assert_int_equal(run_ranks(3, load, &t, 60), 0); /* everything is as it was */
    assert_int_equal(unlink(path), 0);
    t.refused = "rank-0001.slc";
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    remove_tree(dir);
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
    make_own_folder(dir);
    trial t = {.dir = dir, .seed = 8, .step = 12};
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    snprintf(path, sizeof path, "%s/step-000012/manifest.json", dir);
    read_file(path, &bytes, &size);
    for (size_t at = 0; at < size; at++) {
        char kept = bytes[at];
        bool digit = kept >= '0' && kept <= '9';
        bytes[at] = digit ? (char)('0' + (kept - '0' + 1 + (char)(at % 9)) % 10) : (char)(kept ^ 1);
        write_content(path, bytes, size);
        check_refused(dir, "manifest.json", "another byte", at);
        bytes[at] = kept;
        write_content(path, bytes, at);
        check_refused(dir, "manifest.json", "cut", at);
    }
    write_content(path, bytes, size);
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    free(bytes);
    remove_tree(dir);
}

/* ---- Which is the latest ---- */

static int save_step(model *m, uint64_t step)
{
    uint64_t latest = 0;
    bool found = false;
    if (fill(m, step)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m->rt, m->t->dir, extra_text, sizeof extra_text));
    RANK_CHECK(!sluice_checkpoint_latest(m->t->dir, &found, &latest) && found && latest == step);
    return 0;
}

/* Saves 5 and 10, goes on from 5, saves 8, and loads the latest. */
static int take_back(int rank, int size, void *context)
{
    (void)rank, (void)size;
    char five[128];
    model m = {.t = context};
    if (build(&m) || save_step(&m, 5) || save_step(&m, 10)) return 1;
    snprintf(five, sizeof five, "%s/step-000005", m.t->dir);
    RANK_CHECK(!sluice_checkpoint_load(m.rt, five, NULL, NULL));
    if (check(&m, 5) || save_step(&m, 8) || fill(&m, 99)) return 1;
    RANK_CHECK(!sluice_checkpoint_load(m.rt, m.t->dir, NULL, NULL));
    return destroy(&m, check(&m, 8));
}

static int save_nine(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    if (build(&m)) return 1;
    return destroy(&m, save_step(&m, 9));
}

static bool is_there(const char *dir, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void after_a_rollback_the_newest_is_the_latest(void **state)
{
    (void)state;
    char dir[64];
    make_own_folder(dir);
    trial t = {.dir = dir, .seed = 3};
    assert_int_equal(run_ranks(2, take_back, &t, 60), 0);
    assert_true(is_there(dir, "step-000008") && is_there(dir, "step-000010") && !is_there(dir, "step-000005"));
    assert_int_equal(run_ranks(1, save_nine, &t, 60), 0);
    assert_true(is_there(dir, "step-000008") && is_there(dir, "step-000009") && !is_there(dir, "step-000010"));
    remove_tree(dir);
}

/* Makes a manifest one of version 2, which did not count saves. */
static void forget_serial(const char *path)
{
    static const char end[] = ",\n  \"crc32c\": ";
    char *text, *older, *step, *seal;
    size_t size;
    read_file(path, &text, &size);
    text[size] = 0;
    step = strstr(text, "  \"step\"");
    assert_non_null(step);
    assert_true(asprintf(&older, "{\n  \"version\": 2,\n%s", step) > 0);
    for (char *next = seal = strstr(older, end); next; next = strstr(next + 1, end)) seal = next;
    assert_non_null(seal);
    *seal = 0;
    free(text);
    assert_true(asprintf(&text, "%s%s%u\n}\n", older, end, slc_crc32c(0, older, strlen(older))) > 0);
    write_content(path, text, strlen(text));
    free(older);
    free(text);
}

static void expect_latest(const char *dir, uint64_t step)
{
    uint64_t latest = 0;
    bool found = false;
    assert_int_equal(sluice_checkpoint_latest(dir, &found, &latest), SLUICE_OK);
    assert_true(found);
    assert_int_equal(latest, step);
}

/* Checkpoints of versions that did not count come before others, by their steps. One that is damaged keeps its place
 * among the steps, so that the latest one's damage is told, and that of an earlier one hides nothing. */
static void what_has_no_serial_has_a_place(void **state)
{
    (void)state;
    char dir[64], earlier[128], later[128];
    make_own_folder(dir);
    snprintf(earlier, sizeof earlier, "%s/step-000010/manifest.json", dir);
    snprintf(later, sizeof later, "%s/step-000012/manifest.json", dir);
    trial t = {.dir = dir, .seed = 4, .step = 10};
    assert_int_equal(run_ranks(1, save, &t, 60), 0);
    forget_serial(earlier);
    t.step = 12;
    assert_int_equal(run_ranks(1, save, &t, 60), 0);
    forget_serial(later);
    expect_latest(dir, 12);
    assert_int_equal(run_ranks(1, load, &t, 60), 0);
    assert_int_equal(run_ranks(1, save_nine, &t, 60), 0);
    expect_latest(dir, 9);
    t.step = 14;
    assert_int_equal(run_ranks(1, save, &t, 60), 0);
    expect_latest(dir, 14);
    assert_true(is_there(dir, "step-000009") && !is_there(dir, "step-000012"));
    char *bytes;
    size_t size;
    snprintf(later, sizeof later, "%s/step-000014/manifest.json", dir);
    snprintf(earlier, sizeof earlier, "%s/step-000009/manifest.json", dir);
    read_file(earlier, &bytes, &size);
    write_content(earlier, bytes, size / 2);
    expect_latest(dir, 14);
    write_content(earlier, bytes, size);
    free(bytes);
    write_content(later, "damaged", 7);
    expect_latest(dir, 14);
    check_refused(dir, "step-000014/manifest.json", "the latest one's manifest", 0);
    remove_tree(dir);
}

/* ---- One rank's host does not show what rank 0's does ---- */

static int load_apart(int rank, int size, void *context)
{
    (void)size;
    char place[128];
    model m = {.t = context};
    snprintf(place, sizeof place, "%s/%d", m.t->dir, rank);
    RANK_CHECK(!chdir(place));
    if (build(&m) || fill(&m, 99)) return 1;
    sluice_status status = sluice_checkpoint_load(m.rt, "run", NULL, NULL);
    RANK_CHECK(status == SLUICE_ERR_MISMATCH && strstr(sluice_last_error(), m.t->refused));
    return destroy(&m, check(&m, 99));
}

static void run_command(const char *format, const char *dir)
{
    char command[512];
    snprintf(command, sizeof command, format, dir, dir, dir);
    assert_int_equal(system(command), 0);
}

static void a_rank_that_sees_less_is_named(void **state)
{
    (void)state;
    char dir[64], run[80];
    make_own_folder(dir);
    run_command("mkdir %s/0 %s/1", dir);
    snprintf(run, sizeof run, "%s/0/run", dir);
    trial t = {.dir = run, .seed = 2, .step = 5};
    assert_int_equal(run_ranks(2, save, &t, 60), 0);
    t.step = 10;
    assert_int_equal(run_ranks(2, save, &t, 60), 0);

    run_command("cp -r %s/0/run %s/1 && rm -r %s/1/run/step-000010", dir);
    t.dir = dir;
    t.refused = "that rank 1 finds is run/step-000005, and rank 0 finds run/step-000010";
    assert_int_equal(run_ranks(2, load_apart, &t, 60), 0);
    run_command("rm -r %s/1/run && cp -r %s/0/run %s/1", dir);
    run_command("rm %s/1/run/step-000010/rank-0000.slc", dir);
    t.refused = "rank 1 does not see what other ranks do: cannot read run/step-000010/rank-0000.slc";
    assert_int_equal(run_ranks(2, load_apart, &t, 60), 0);
    run_command("rm -r %s/1/run", dir);
    t.refused = "rank 1 does not see what other ranks do: there is no checkpoint in run";
    assert_int_equal(run_ranks(2, load_apart, &t, 60), 0);
    remove_tree(dir);
}

/* Anything that is not a file must be refused: a pipe would be waited for, a device read for ever. */
static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"manifest.json", "extra", "rank-0001.slc"};
    char dir[64], path[128];
    make_own_folder(dir);
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
            remove_tree(path);
        }
    remove_tree(dir);
}

/* ---- Leftovers that cannot be removed ---- */

/* Saving leaves alone what a user has put into the checkpoints' folder: a folder in a checkpoint, another in the
 * leftovers of a crash, and a link in the place of such leftovers. */
static void what_cannot_be_removed_stays(void **state)
{
    (void)state;
    char dir[64], other[64], path[128], kept[128];
    make_own_folder(dir);
    make_own_folder(other);
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
    write_content(kept, "x", 1);
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
    remove_tree(dir);
    remove_tree(other);
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
    make_own_folder(dir);
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
    remove_tree(dir);
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
    make_own_folder(dir);
    trial t = {.dir = dir, .seed = 4};
    assert_int_equal(run_ranks(2, save_where_it_cannot, &t, 60), 0);
    assert_int_equal(entries(dir), 0);
    remove_tree(dir);
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
 * half done, later at a drawn call. In odd rounds all ranks are killed after a drawn time. */
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
    make_own_folder(dir);
    uint64_t *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(reached, MAP_FAILED);
    uint32_t many = asked ? asked : test_rounds(10), half_done = 0;
    uint64_t last = 0;
    /* A rank that survives for a moment may clean up, so a few kills more may be needed. */
    for (uint32_t i = 0; i < many || (!half_done && i < many + 30); i++) {
        trial t = {.dir = dir, .seed = i, .step = last, .reached = reached};
        kill_while_saving(i, &t, reached);
        bool found = false;
        assert_int_equal(sluice_checkpoint_latest(dir, &found, &last), SLUICE_OK);
        assert_true(found && last >= *reached && last <= *reached + 1);
        half_done += has_partial(dir) || last > *reached;
        t = (trial){.dir = dir, .seed = i, .step = last};
        assert_int_equal(run_ranks(1 + (int)(i % 3), load, &t, 60), 0);
    }
    print_message("%u kills or more, %u of them while a checkpoint was half done\n", many, half_done);
    assert_true(half_done > 0);
    munmap(reached, sizeof *reached);
    remove_tree(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_world_reads_every_other),
        cmocka_unit_test(a_step_saved_again_is_replaced),
        cmocka_unit_test(other_models_are_refused_by_name),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(all_bytes_of_a_manifest_count),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_named),
        cmocka_unit_test(what_cannot_be_removed_stays),
        cmocka_unit_test(two_jobs_do_not_share_a_folder),
        cmocka_unit_test(kills_lose_no_checkpoint),
        cmocka_unit_test(a_rank_that_sees_less_is_named),
        cmocka_unit_test(what_has_no_serial_has_a_place),
        cmocka_unit_test(after_a_rollback_the_newest_is_the_latest),
    };
    disk_open();
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) asked = (uint32_t)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
