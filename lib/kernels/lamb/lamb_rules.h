/* The rules of lamb_numbers.h for one parameter, for the host and in a kernel of the GPU. */
#pragma once

#include "lib/kernels/lamb/lamb_numbers.h"
#include "lib/kernels/lamb/trust.h"
#include "lib/kernels/norm/norm_result.h"

#include <math.h>
#include <string.h>

static inline SLC_HOST_AND_GPU void lamb_average(const slc_lamb_rules *rules, const slc_lamb_parameter *p)
{
    if (p->trusts_one || (p->words && p->words->skip)) return;
    slc_lamb_bounds bounds = rules->trust;
    slc_lamb_numbers *n = p->numbers;
    if (!rules->clamps) bounds.least = 0, bounds.most = INFINITY;
    const double trust = lamb_trust(p->norms[0], p->norms[1], &bounds);
    if (trust == 1) return;
    n->coefficient =
        rules->beta * n->coefficient + (1 - rules->beta) * fmax(rules->trust.least, fmin(rules->trust.most, trust));
    n->ratios++;
}

static inline SLC_HOST_AND_GPU void lamb_factor(const slc_lamb_rules *rules, const slc_lamb_parameter *p)
{
    if (p->words && p->words->skip) return;
    slc_lamb_numbers *n = p->numbers;
    double move, update, factor;
    if (p->norms) {
        move = p->norms[0], update = p->norms[1], factor = p->norms[2];
    } else {
        move = norm_result(p->sums.move), update = norm_result(p->sums.update);
        memcpy(&factor, p->sums.ratio, sizeof factor);
    }
    if (!p->trusts_one) {
        const double share = move < update ? move / update : 1;
        if (p->decays) factor = factor * share + (1 - share);
        factor = fmax(fmin(factor, rules->most), rules->least);
        factor = fmin(factor, n->last_factor * (1 + rules->threshold));
        n->last_factor = fmax(factor, n->last_factor * (1 - rules->threshold));
    }
    *p->product = n->settled * n->last_factor;
}
