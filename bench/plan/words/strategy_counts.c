/* Counts units by strategy. tests/command/recipe/recipe_plan_test.sh covers this file. */
#include "bench/plan/words/strategy_counts.h"

#include "lib/plan/roles.h"

#include <stdio.h>

slc_strategy_counts slc_strategy_counts_of(const slc_job *job, const slc_strategy *strategies)
{
    slc_strategy_counts counts = {0};
    for (uint32_t u = 0; u < job->unit_count; u++) counts.of[strategies[u]] += !slc_looks_up(&job->units[u]);
    return counts;
}

slc_strategy_counts_text slc_strategy_counts_in_words(const slc_strategy_counts *counts)
{
    slc_strategy_counts_text words = {0};
    size_t used = 0;
    for (int k = 0; k < SLC_STRATEGIES; k++)
        if (counts->of[k])
            used += (size_t)snprintf(words.text + used, sizeof words.text - used, "%s%u %s", used ? ", " : "",
                                     counts->of[k], slc_strategy_name((slc_strategy)k));
    return words;
}
