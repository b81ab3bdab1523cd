/* Checkpoints: whatever world and strategies saved, whatever world and strategies load, every value and every optimizer
 * state has the same bits, whatever precision either runs in. What is not whole or not of this model is refused by name
 * and changes nothing. Ranks killed while they save leave the last whole checkpoint.
 *
 * checkpoint_test [PATTERN [MANY]]: tests whose name matches, with so many kills or so many worlds (`./dev stress`). */
#include "lib/base/random.h"
#include "tests/ranks.h"
#include "tests/scale.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { LAYERS = 4, PARAMS = 2 * LAYERS + 2, ARRAYS = 3, LONGEST = 5000 };

static const uint64_t counts[PARAMS] = {1, 17, 1000, 4097, 33, 640, 16, 2999, LONGEST, 255};
static const char extra_text[] = "what the binary\0keeps";

static uint32_t asked; /* how many, on the command line */

/* ---- A model whose contents are a function of the step ---- */

typedef enum { AS_IT_IS, ONE_LESS, ONE_MORE, OTHER_COUNT, OTHER_NAME, OTHER_FROZEN, OTHER_OPTIMIZER } model_change;

typedef struct {
    const char *dir;
    uint64_t seed; /* of strategies, schedule and blocks */
    uint64_t step;
    model_change change;
    const char *refused;        /* words of the message; NULL: it loads */
    bool may_load;              /* or it is as it was */
    volatile uint64_t *reached; /* the last step whose save has returned */
} trial;

typedef struct {
    const trial *t;
    uint64_t drawn;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS];
    sluice_param *param[PARAMS + 1];
    uint32_t param_count;
} model;

static uint64_t draw(model *m, uint64_t limit)
{
    return slc_random_below(m->t->seed, 9, m->drawn++, limit);
}

static bool is_frozen(uint32_t param)
{
    return param == 3;
}

/* What is frozen may lie in bf16 alone. */
static float content(uint64_t step, uint32_t param, uint32_t array, uint64_t element)
{
    uint32_t block[4];
    slc_random_block(step, param * ARRAYS + array, element, block);
    return (float)(block[0] >> (is_frozen(param) ? 24 : 8)) * 0x1p-20f;
}

static sluice_status no_update(const sluice_update *update, void *context)
{
    (void)update, (void)context;
    return SLUICE_OK;
}

static const sluice_optimizer another = {
    .name = "another", .state_count = 2, .state_name = {"exp_avg", "exp_avg_sq"}, .update = no_update};

static int add_param(model *m, uint32_t layer, const char *name, uint64_t count, bool frozen, bool tied)
{
    sluice_param_desc desc = {.name = name, .count = count, .frozen = frozen, .tied = tied};
    if (tied) { /* may be split by its uses, which a checkpoint does not tell */
        desc.row_elements = 8;
        desc.most_rows = 100;
    }
    RANK_CHECK(!sluice_param_add(m->layer[layer], &desc, &m->param[m->param_count++]));
    return 0;
}

/* Two parameters a layer, one of them frozen in one layer; a tied one; one more. */
static int add_params(model *m)
{
    model_change change = m->t->change;
    for (uint32_t l = 0; l < LAYERS; l++)
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t p = 2 * l + k;
            bool here = p == 5, frozen = is_frozen(p) || (here && change == OTHER_FROZEN);
            if (here && change == ONE_LESS) continue;
            const char *name = here && change == OTHER_NAME ? "renamed" : k ? "bias" : "weight";
            if (add_param(m, l, name, counts[p] + (here && change == OTHER_COUNT), frozen, false)) return 1;
        }
    if (add_param(m, 0, "tied", counts[PARAMS - 2], false, true)) return 1;
    RANK_CHECK(!sluice_param_use(m->layer[LAYERS - 1], m->param[m->param_count - 1]));
    if (change == ONE_MORE && add_param(m, 1, "more", 5, false, false)) return 1;
    return add_param(m, 2, "last", counts[PARAMS - 1], false, false);
}

static int build(model *m)
{
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    static const char *const schedules[] = {"serial", "one_ahead", "bucketed", "random"};
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = strategies[draw(m, 4)];
    config.schedule = schedules[draw(m, 4)];
    config.block_bytes = 256 << draw(m, 8);
    config.precision = draw(m, 2) ? SLUICE_BF16 : SLUICE_FP32;
    config.tied = draw(m, 2) ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
    if (m->t->change == OTHER_OPTIMIZER) config.optimizer = &another;
    RANK_CHECK(!sluice_world_create(NULL, &m->world));
    RANK_CHECK(!sluice_runtime_create(m->world, &config, &m->rt));
    for (uint32_t l = 0; l < LAYERS; l++) {
        char name[16];
        snprintf(name, sizeof name, "h.%u", l);
        RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layer[l]));
        RANK_CHECK(!draw(m, 2) || !sluice_layer_strategy(m->layer[l], strategies[draw(m, 4)]));
    }
    if (add_params(m)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    return 0;
}

static int destroy(model *m, int code)
{
    sluice_runtime_destroy(m->rt);
    sluice_world_destroy(m->world);
    return code;
}

static const char *state_name(uint32_t array)
{
    return array == 1 ? "exp_avg" : "exp_avg_sq";
}

static int fill(model *m, uint64_t step)
{
    static float values[LONGEST];
    for (uint32_t p = 0; p < PARAMS; p++)
        for (uint32_t a = 0; a < (is_frozen(p) ? 1 : ARRAYS); a++) {
            for (uint64_t i = 0; i < counts[p]; i++) values[i] = content(step, p, a, i);
            sluice_status status = a ? sluice_param_state_write(m->param[p], state_name(a), 0, counts[p], values)
                                     : sluice_param_write(m->param[p], 0, counts[p], values);
            RANK_CHECK(!status);
        }
    RANK_CHECK(!sluice_runtime_step_set(m->rt, step));
    return 0;
}

static int check(model *m, uint64_t step)
{
    static float values[LONGEST];
    RANK_CHECK(sluice_runtime_step(m->rt) == step);
    for (uint32_t p = 0; p < PARAMS; p++)
        for (uint32_t a = 0; a < (is_frozen(p) ? 1 : ARRAYS); a++) {
            sluice_status status = a ? sluice_param_state_read(m->param[p], state_name(a), 0, counts[p], values)
                                     : sluice_param_read(m->param[p], 0, counts[p], values);
            RANK_CHECK(!status);
            for (uint64_t i = 0; i < counts[p]; i++) {
                float wanted = content(step, p, a, i);
                RANK_CHECK(!memcmp(&values[i], &wanted, sizeof wanted));
            }
        }
    return 0;
}

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
    if (m.t->refused && !(status && m.t->may_load)) {
        RANK_CHECK(status == SLUICE_ERR_FORMAT || status == SLUICE_ERR_IO);
        RANK_CHECK(strstr(sluice_last_error(), m.t->refused));
    }
    if (status) {
        RANK_CHECK(m.t->refused || m.t->may_load);
        return destroy(&m, comparable ? check(&m, before) : 0);
    }
    RANK_CHECK(extra_bytes == sizeof extra_text && !memcmp(extra, extra_text, extra_bytes));
    free(extra);
    return destroy(&m, check(&m, m.t->step));
}

/* Until it is killed. */
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

/* ---- Folders ---- */

static void make_folder(char dir[64])
{
    snprintf(dir, 64, "/tmp/sluice-checkpoint-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

static void remove_all(const char *path)
{
    DIR *open = opendir(path);
    for (const struct dirent *entry; open && (entry = readdir(open));) {
        char inner[512];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        remove_all(inner);
    }
    if (open) closedir(open);
    remove(path);
}

static uint32_t entries(const char *path)
{
    uint32_t count = 0;
    DIR *open = opendir(path);
    for (const struct dirent *entry; open && (entry = readdir(open));) count += entry->d_name[0] != '.';
    if (open) closedir(open);
    return count;
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
            assert_int_equal(entries(dir), step < 2 ? 1 : 2); /* the last two are kept, and nothing else */
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
    t = (trial){.dir = one, .seed = 7, .step = 1234567}; /* by the folder of the one */
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    remove_all(dir);
}

/* ---- What is refused ---- */

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

/* Cut, lengthened, or a bit turned over: refused with nothing changed, or a bit that says nothing. */
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
        size_t at = slc_random_below(7, 0, round, size), kind = round / 4 % 3;
        char kept = bytes[at];
        if (kind == 0) bytes[at] ^= (char)(1 << round % 8);
        bytes[size] = ' ';
        write_file(path, bytes, kind == 1 ? at : kind == 2 ? size + 1 : size);
        bytes[at] = kept;
        t = (trial){.dir = dir, .seed = round, .step = 12, .refused = "step-000012", .may_load = round % 4 == 3};
        if (t.may_load) t.refused = NULL;
        if (run_ranks(1 + (int)(round % 3), load, &t, 60)) fail_msg("%s, byte %zu, kind %zu", path, at, kind);
        write_file(path, bytes, size);
        free(bytes);
    }
    snprintf(path, sizeof path, "%s/step-000012/rank-0001.slc", dir);
    t = (trial){.dir = dir, .seed = 1, .step = 12};
    assert_int_equal(run_ranks(3, load, &t, 60), 0); /* all as it was */
    assert_int_equal(unlink(path), 0);
    t.refused = "rank-0001.slc";
    assert_int_equal(run_ranks(3, load, &t, 60), 0);
    remove_all(dir);
}

static int save_where_it_cannot(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    if (build(&m) || fill(&m, 4)) return 1;
    RANK_CHECK(sluice_checkpoint_save(m.rt, "/proc/nowhere/at/all", NULL, 0) == SLUICE_ERR_IO);
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

static void start(pid_t *children, int size, trial *t)
{
    int port = free_port();
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        children[r] = fork();
        if (children[r]) continue;
        become_rank(r, size, port);
        _exit(save_on_and_on(r, size, t));
    }
}

static void kills_lose_no_checkpoint(void **state)
{
    (void)state;
    enum { SIZE = 2 };
    char dir[64];
    make_folder(dir);
    uint64_t *reached = mmap(NULL, sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(reached, MAP_FAILED);
    uint32_t many = asked ? asked : test_rounds(10), half_done = 0;
    uint64_t last = 0;
    for (uint32_t i = 0; i < many; i++) {
        pid_t children[SIZE];
        trial t = {.dir = dir, .seed = i, .step = last, .reached = reached};
        uint64_t begun = *reached;
        start(children, SIZE, &t);
        for (int ms = 0; *reached < begun + 1 + i % 2 && ms < 60000; ms++) wait_ms(1);
        wait_ms((long)slc_random_below(2, 0, i, 40));
        for (int r = 0; r < SIZE; r++) kill(children[(r + i) % SIZE], SIGKILL);
        for (int r = 0; r < SIZE; r++) waitpid(children[r], NULL, 0);

        bool found = false;
        assert_int_equal(sluice_checkpoint_latest(dir, &found, &last), SLUICE_OK);
        assert_true(found && last >= *reached && last <= *reached + 1);
        half_done += entries(dir) > 2 || last > *reached;
        t = (trial){.dir = dir, .seed = i, .step = last};
        assert_int_equal(run_ranks(1 + (int)(i % 3), load, &t, 60), 0);
    }
    print_message("%u kills, %u of them while a checkpoint was half done\n", many, half_done);
    munmap(reached, sizeof *reached);
    remove_all(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_world_reads_every_other),    cmocka_unit_test(a_step_saved_again_is_replaced),

        cmocka_unit_test(other_models_are_refused_by_name), cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_named),  cmocka_unit_test(kills_lose_no_checkpoint),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) asked = (uint32_t)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
