/* A part of a checkpoint is loaded by a list of names: names are skipped, renamed and kept as the list says, everything
 * else has the bits that were saved, and a name which nothing has, or ranks with other lists, change nothing. */
#include "tests/checkpoint/checkpoint_model.h"

enum { RANKS = 2, SAVED = 12, BEFORE = 99, LINES = 4 };

typedef struct {
    trial t;
    const char *const *skip, *const *rename, *const *keep; /* ended by NULL */
    const char *told[LINES];                               /* that rank 0 must hear */
    sluice_status expected;
    bool ranks_differ;
} listed;

/* The number that content() knows this parameter by; PARAMS: it is not of the checkpoint. */
static uint32_t number_of(const char *name)
{
    unsigned layer;
    char rest[32] = "";
    if (sscanf(name, "h.%u.%31s", &layer, rest) != 2) return PARAMS;
    if (!strcmp(rest, "weight")) return 2 * layer;
    if (!strcmp(rest, "bias") || !strcmp(rest, "renamed")) return 2 * layer + 1;
    return !strcmp(rest, "tied") ? PARAMS - 2 : !strcmp(rest, "last") ? PARAMS - 1 : PARAMS;
}

static float before(uint64_t element)
{
    return (float)(element % 100) * 0.5f;
}

static int each_array(model *m, bool writes, uint64_t step)
{
    static float values[LONGEST];
    for (uint32_t i = 0; i < m->param_count; i++) {
        sluice_param *param = m->param[i];
        const uint32_t p = number_of(sluice_param_name(param));
        const uint64_t count = sluice_param_count(param);
        for (uint32_t a = 0; a < (p < PARAMS && is_frozen(p) ? 1 : ARRAYS); a++) {
            for (uint64_t k = 0; k < count; k++) values[k] = before(k);
            sluice_status status = SLUICE_OK;
            if (writes)
                status = a ? sluice_param_state_write(param, state_name(a), 0, count, values)
                           : sluice_param_write(param, 0, count, values);
            else
                status = a ? sluice_param_state_read(param, state_name(a), 0, count, values)
                           : sluice_param_read(param, 0, count, values);
            RANK_CHECK(!status);
            for (uint64_t k = 0; !writes && k < count; k++) {
                const float wanted = p < PARAMS && step == SAVED ? content(step, p, a, k) : before(k);
                RANK_CHECK(!memcmp(&values[k], &wanted, sizeof wanted));
            }
        }
    }
    return 0;
}

static int save(int rank, int size, void *context)
{
    (void)rank, (void)size;
    model m = {.t = context};
    if (build(&m) || fill(&m, SAVED)) return 1;
    RANK_CHECK(!sluice_checkpoint_save(m.rt, m.t->dir, NULL, 0));
    return destroy(&m, 0);
}

typedef struct {
    const char *const *wanted;
    uint32_t seen;
    bool wrong;
} heard;

static void hear(const char *line, void *context)
{
    heard *h = context;
    h->wrong |= h->seen >= LINES || !h->wanted[h->seen] || strcmp(line, h->wanted[h->seen]) != 0;
    h->seen++;
}

static size_t count_of(const char *const *names)
{
    size_t count = 0;
    while (names && names[count]) count++;
    return count;
}

static int load(int rank, int size, void *context)
{
    (void)size;
    const listed *l = context;
    model m = {.t = &l->t};
    heard told = {.wanted = l->told};
    static const char *const other[] = {"h.0.weight"};
    sluice_checkpoint_list list =
        SLUICE_INIT(sluice_checkpoint_list, .skip = l->skip, .skip_count = count_of(l->skip), .rename = l->rename,
                    .rename_count = count_of(l->rename) / 2, .keep = l->keep, .keep_count = count_of(l->keep),
                    .told = hear, .context = &told);
    if (l->ranks_differ && rank == 1) {
        list.skip = other;
        list.skip_count = 1;
    }
    if (build(&m) || each_array(&m, true, BEFORE)) return 1;
    const sluice_status status = sluice_checkpoint_load_list(m.rt, l->t.dir, &list, NULL, NULL);
    if (status != l->expected) fprintf(stderr, "status %d: %s\n", (int)status, sluice_last_error());
    RANK_CHECK(status == l->expected);
    if (status) {
        RANK_CHECK(strstr(sluice_last_error(), l->t.refused));
        return destroy(&m, each_array(&m, false, BEFORE));
    }
    RANK_CHECK(sluice_runtime_step(m.rt) == SAVED);
    RANK_CHECK(!told.wrong && told.seen == (rank ? 0 : count_of(l->told)));
    return destroy(&m, each_array(&m, false, SAVED));
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void lists_are_followed(void **state)
{
    (void)state;
    char dir[64];
    make_own_folder(dir);
    const trial saved = {.dir = dir, .seed = 3, .step = SAVED};
    assert_int_equal(run_ranks(RANKS, save, (void *)&saved, 60), 0);
    const listed cases[] = {
        {.t.change = ONE_LESS, .skip = NAMES("h.2.bias"), .told = {"\"h.2.bias\" is left out"}},
        {.t.change = ONE_MORE,
         .keep = NAMES("h.1.more"),
         .told = {"\"h.1.more\" is new and keeps the values that it has"}},
        {.t.change = ONE_MORE,
         .keep = NAMES("h.1.*"),
         .told = {"\"h.1.more\" is new and keeps the values that it has"}},
        {.t.change = OTHER_NAME,
         .rename = NAMES("h.2.bias", "h.2.renamed"),
         .told = {"\"h.2.bias\" becomes \"h.2.renamed\""}},
        {.t.change = OTHER_NAME,
         .rename = NAMES("h.2.bi*", "h.2.renamed*"),
         .expected = SLUICE_ERR_FORMAT,
         .t.refused = "\"h.2.renamedas\""},
        {.t.change = AS_IT_IS, .told = {NULL}},
        {.t.change = ONE_LESS, .expected = SLUICE_ERR_FORMAT, .t.refused = "that this model does not have"},
        {.t.change = ONE_MORE, .expected = SLUICE_ERR_FORMAT, .t.refused = "lacks the parameter \"h.1.more\""},
        {.t.change = AS_IT_IS,
         .skip = NAMES("h.9.bias"),
         .expected = SLUICE_ERR_ARGUMENT,
         .t.refused = "\"h.9.bias\" in \"skip\" is the name of no parameter"},
        {.t.change = AS_IT_IS,
         .keep = NAMES("nothing"),
         .expected = SLUICE_ERR_ARGUMENT,
         .t.refused = "\"nothing\" in \"keep\""},
        {.t.change = ONE_LESS,
         .rename = NAMES("h.2.bias", "h.2.weight"),
         .expected = SLUICE_ERR_FORMAT,
         .t.refused = "elements"},
        {.t.change = AS_IT_IS,
         .rename = NAMES("h.2.*", "h.2.bias"),
         .expected = SLUICE_ERR_ARGUMENT,
         .t.refused = "give both a \"*\""},
        {.t.change = AS_IT_IS,
         .skip = NAMES("h.*.bias"),
         .expected = SLUICE_ERR_ARGUMENT,
         .t.refused = "at the end only"},
        {.t.change = ONE_LESS,
         .skip = NAMES("h.2.bias"),
         .ranks_differ = true,
         .expected = SLUICE_ERR_MISMATCH,
         .t.refused = "list of parameters to load"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        listed one = cases[i];
        one.t.dir = dir;
        one.t.seed = 20 + i;
        if (run_ranks(RANKS, load, &one, 60)) fail_msg("case %zu", i);
    }
    remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_followed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
