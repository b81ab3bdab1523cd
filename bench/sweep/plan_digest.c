/* The plan's JSON without what is for people, in one spelling. tests/command/bench_test.sh covers this file. */
#include "bench/sweep/plan_digest.h"

#include "lib/base/hash/sha256.h"
#include "lib/base/status.h"

#include <jansson.h>
#include <sluice/plan.h>
#include <stdlib.h>
#include <string.h>

sluice_status slc_bench_plan_digest(sluice_runtime *rt, char hex[65])
{
    char *plan = NULL, *profile = NULL, *text = NULL;
    slc_sha256 hash;
    sluice_status status = sluice_runtime_plan_json(rt, "a sweep", &plan, &profile);
    if (status) return status;
    json_t *all = json_loads(plan, 0, NULL);
    json_object_del(all, "forecast");
    json_object_del(all, "schedule");
    if (all) text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    slc_sha256_init(&hash);
    if (text) slc_sha256_add(&hash, text, strlen(text));
    slc_sha256_finish(&hash, hex);
    status = text ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "the digest of a plan");
    free(text);
    json_decref(all);
    free(profile);
    free(plan);
    return status;
}
