/* Layers are joined in groups of equal length. Only the layers at both ends of the model are joined in small groups,
 * because the fullest moment and the border between two steps lie there. sched/joint/deep_test.c covers this file. */
#include "ilp/coarse.h"

#include "lib/base/array.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEEP = 128,  /* more layers than these are joined */
    GROUPS = 48, /* the longest groups hold so many of all layers, an equal share each */
    GROWTH = 3,  /* a group is at most a third as long as it is far from the nearer end of the model */
    MANY = 3     /* units */
};

bool slc_coarse_is_wanted(const slc_slot_request *request)
{
    return request->job->layer_count > DEEP && !request->whole_blocks && !request->relaxed;
}

/* ---- Layers ---- */

static uint8_t recompute_of(const slc_slot_request *request, uint32_t layer)
{
    return request->recompute ? request->recompute[layer] : 0;
}

/* Returns how many layers the group has that begins with this layer. */
static uint32_t group_length(uint32_t layer, uint32_t layers)
{
    const uint32_t most = (layers + GROUPS - 1) / GROUPS, near = layer < layers - layer ? layer : layers - layer;
    return near / GROWTH < 1 ? 1 : near / GROWTH < most ? near / GROWTH : most;
}

static void join_layers(slc_coarse *c)
{
    const uint32_t layers = c->fine->job->layer_count;
    uint32_t count = 0, next = 0;
    for (uint32_t l = 0; l < layers; l++) {
        bool differs = l && recompute_of(c->fine, l) != recompute_of(c->fine, l - 1);
        if (l == next || differs) {
            c->first_layer[count++] = l;
            next = l + group_length(l, layers);
        }
        c->joined_layer[l] = count - 1;
    }
    c->first_layer[count] = layers;
    c->job.layer_count = count;
}

static uint32_t joined_slot(const slc_coarse *c, uint32_t slot)
{
    const slc_job *job = c->fine->job;
    uint32_t layer = c->joined_layer[slc_slot_layer(job, slot)];
    return slc_slot_is_forward(job, slot) ? slc_forward_slot(layer) : slc_backward_slot(&c->job, layer);
}

/* Returns the first of the real slots that a joined slot stands for; *count becomes how many they are. */
static uint32_t first_member(const slc_coarse *c, uint32_t slot, uint32_t *count)
{
    uint32_t layer = slc_slot_layer(&c->job, slot), first = c->first_layer[layer], end = c->first_layer[layer + 1];
    *count = end - first;
    return slc_slot_is_forward(&c->job, slot) ? slc_forward_slot(first) : slc_backward_slot(c->fine->job, end - 1);
}

/* Returns the probability with which a joined layer is kept: the mean over its layers `first` to `end` - 1. */
static double mean_keeps(const slc_coarse *c, uint32_t first, uint32_t end)
{
    double sum = 0;
    for (uint32_t l = first; l < end; l++) sum += c->fine->times->keeps[l] / (end - first);
    return sum;
}

static void join_times(slc_coarse *c)
{
    const slc_job *job = c->fine->job;
    for (uint32_t s = 0; s < slc_job_slots(job); s++) c->times.slot_s[joined_slot(c, s)] += c->fine->times->slot_s[s];
    for (uint32_t l = 0; l < job->layer_count; l++) {
        c->times.recompute_s[c->joined_layer[l]] += c->fine->times->recompute_s[l];
        c->recompute[c->joined_layer[l]] = recompute_of(c->fine, l);
    }
    for (uint32_t l = 0; c->times.keeps && l < c->job.layer_count; l++)
        c->times.keeps[l] = mean_keeps(c, c->first_layer[l], c->first_layer[l + 1]);
}

/* ---- Units ---- */

static bool may_join(const slc_unit *unit)
{
    return unit->use_count == 1 && unit->role == SLC_UNIT_WHOLE;
}

static bool joins(const slc_coarse *c, uint32_t unit, uint32_t joined)
{
    const slc_unit *fine = &c->fine->job->units[unit], *coarse = &c->job.units[joined];
    return may_join(coarse) && c->joined_layer[fine->uses[0].layer] == coarse->uses[0].layer &&
           fine->uses[0].backward_value == coarse->uses[0].backward_value && fine->dtype == coarse->dtype &&
           fine->trainable == coarse->trainable && c->fine->allowed[unit] == c->allowed[joined];
}

static void add_unit(slc_coarse *c, uint32_t u, slc_use *uses)
{
    const slc_unit *fine = &c->fine->job->units[u];
    slc_unit *joined = &c->job.units[c->job.unit_count];
    *joined = *fine;
    joined->uses = uses;
    joined->use_count = 0;
    for (uint32_t i = 0; i < fine->use_count; i++) {
        uint32_t layer = c->joined_layer[fine->uses[i].layer];
        if (!joined->use_count || uses[joined->use_count - 1].layer != layer)
            uses[joined->use_count++] = (slc_use){layer, false};
        uses[joined->use_count - 1].backward_value |= fine->uses[i].backward_value;
    }
    if (fine->role == SLC_UNIT_SPLIT) joined->partner = c->job.unit_count + 1;
    if (fine->role == SLC_UNIT_ROWS) joined->partner = c->job.unit_count - 1;
    c->allowed[c->job.unit_count] = c->fine->allowed[u];
    c->fit_elements[c->job.unit_count] = fine->elements;
    c->joined_unit[u] = c->job.unit_count++;
}

static void join_unit(slc_coarse *c, uint32_t u, uint32_t joined)
{
    const slc_unit *fine = &c->fine->job->units[u];
    slc_unit *into = &c->job.units[joined];
    into->elements += fine->elements;
    if (fine->block_elements > into->block_elements) into->block_elements = fine->block_elements;
    into->exchange.worker += fine->exchange.worker;
    into->exchange.server += fine->exchange.server;
    into->exchange.packets += fine->exchange.packets;
    into->exchange.results += fine->exchange.results;
    into->exchange.wire += fine->exchange.wire;
    if (fine->elements > c->fit_elements[joined]) c->fit_elements[joined] = fine->elements;
    c->joined_unit[u] = joined;
}

/* Units of a layer follow each other in most jobs, so only the last joined ones are looked at. */
static void join_units(slc_coarse *c)
{
    enum { LOOKED_AT = 8 };
    slc_use *uses = c->uses;
    for (uint32_t u = 0; u < c->fine->job->unit_count; u++) {
        const slc_unit *fine = &c->fine->job->units[u];
        uint32_t joined = c->job.unit_count, end = joined > LOOKED_AT ? joined - LOOKED_AT : 0;
        bool found = false;
        while (may_join(fine) && !found && joined-- > end) found = joins(c, u, joined);
        if (found) {
            join_unit(c, u, joined);
            continue;
        }
        add_unit(c, u, uses);
        uses += fine->use_count;
    }
}

/* Joined units have fewer operations than the real ones, so the latency of all real operations is spread over the
 * bytes. */
static void spread_latency(slc_coarse *c)
{
    const slc_job *job = c->fine->job;
    double latencies = job->unit_count, bytes = 0;
    slc_link_line *lines[] = {&c->times.link.reduce_scatter, &c->times.link.all_gather};
    for (uint32_t u = 0; u < job->unit_count; u++)
        bytes += (double)slc_operation_bytes(job, &job->units[u], SLC_ITEM_REDUCE_SCATTER, job->units[u].elements);
    for (int i = 0; i < 2 && bytes > 0; i++) {
        double byte_s = 1 / lines[i]->bytes_per_s + latencies * lines[i]->latency_s * job->world / bytes;
        lines[i]->bytes_per_s = 1 / byte_s;
        lines[i]->latency_s = 0;
    }
}

/* ---- Memory ---- */

static int by_life(const void *a, const void *b)
{
    const slc_activation_life *x = a, *y = b;
    if (x->first_slot != y->first_slot) return x->first_slot < y->first_slot ? -1 : 1;
    if (x->last_slot != y->last_slot) return x->last_slot < y->last_slot ? -1 : 1;
    return (int)x->recomputable - (int)y->recomputable;
}

/* Sums the activations that live from one joined slot to another. Those of an evaluation pass are left out: a joined
 * slot would hold the activations of its whole group together, nearly all of which the real pass does not hold at
 * once. */
static void join_activations(slc_coarse *c, int64_t *inside)
{
    const slc_job *job = c->fine->job;
    slc_activation_life *lives = c->job.activations;
    uint32_t count = 0, kept = 0;
    for (uint32_t a = 0; a < job->activation_count; a++) {
        slc_activation_life life = job->activations[a];
        if (life.last_slot < life.first_slot) continue;
        uint32_t first = joined_slot(c, life.first_slot), last = joined_slot(c, life.last_slot);
        if (first == last) {
            inside[life.first_slot] += (int64_t)life.bytes;
            inside[life.last_slot + 1] -= (int64_t)life.bytes;
            continue;
        }
        life.first_slot = first;
        life.last_slot = last;
        life.last_forward_slot = 0;
        lives[count++] = life;
    }
    if (count) qsort(lives, count, sizeof *lives, by_life);
    for (uint32_t i = 0; i < count; i++) {
        if (kept && !by_life(&lives[kept - 1], &lives[i]))
            lives[kept - 1].bytes += lives[i].bytes;
        else
            lives[kept++] = lives[i];
    }
    c->job.activation_count = kept;
}

/* Adds up the workspaces, and the activations that live within one joined slot: each joined slot gets one workspace, as
 * large as they are together at its fullest moment. */
static void join_workspaces(slc_coarse *c, int64_t *inside)
{
    const slc_job *job = c->fine->job;
    int64_t bytes = 0;
    for (uint32_t w = 0; w < job->workspace_count; w++) {
        inside[job->workspaces[w].slot] += (int64_t)job->workspaces[w].bytes;
        inside[job->workspaces[w].slot + 1] -= (int64_t)job->workspaces[w].bytes;
    }
    c->job.workspace_count = slc_job_slots(&c->job);
    for (uint32_t s = 0; s < slc_job_slots(job); s++) {
        slc_workspace_life *work = &c->job.workspaces[joined_slot(c, s)];
        bytes += inside[s];
        work->slot = joined_slot(c, s);
        work->name = "joined";
        if (bytes > (int64_t)work->bytes) work->bytes = (uint64_t)bytes;
    }
}

/* Returns the bytes that the program needs in a joined layer's slots and a plan does not: the program gathers a joined
 * unit as a whole, a plan gathers its members one after the other. */
static uint64_t spared_bytes(const slc_coarse *c, uint32_t layer)
{
    uint64_t most = 0;
    for (uint32_t u = 0; u < c->job.unit_count; u++) {
        const slc_unit *unit = &c->job.units[u];
        const uint64_t bytes =
            slc_operation_bytes(&c->job, unit, SLC_ITEM_GATHER_WINDOW, unit->elements - c->fit_elements[u]);
        for (uint32_t i = 0; bytes > most && i < unit->use_count; i++)
            if (unit->uses[i].layer == layer) most = bytes;
    }
    return most;
}

/* Gives each joined slot its spared bytes as room. The limit rises by the most that any layer is spared, and the
 * workspaces of a slot grow by what its own layer is spared less. If every slot had the most, an answer would fill the
 * fullest moment with room that does not exist, because the layers next to it are hardly joined. */
static void give_room(slc_coarse *c)
{
    uint64_t most = 0;
    for (uint32_t l = 0; l < c->job.layer_count; l++) {
        const uint64_t spared = spared_bytes(c, l);
        if (spared > most) most = spared;
    }
    if (c->request.limit >= UINT64_MAX - most) return;
    c->request.limit += most;
    for (uint32_t s = 0; s < slc_job_slots(&c->job); s++)
        c->job.workspaces[s].bytes += most - spared_bytes(c, slc_slot_layer(&c->job, s));
}

/* ---- All together ---- */

static sluice_status allocate(slc_coarse *c, int64_t **inside)
{
    const slc_job *job = c->fine->job;
    size_t layers = (size_t)job->layer_count + 1, units = (size_t)job->unit_count + 1, uses = 1;
    for (uint32_t u = 0; u < job->unit_count; u++) uses += job->units[u].use_count;
    c->joined_layer = calloc(layers, sizeof *c->joined_layer);
    c->first_layer = calloc(layers + 1, sizeof *c->first_layer);
    c->joined_unit = calloc(units, sizeof *c->joined_unit);
    c->fit_elements = calloc(units, sizeof *c->fit_elements);
    c->uses = calloc(uses, sizeof *c->uses);
    c->allowed = calloc(units, sizeof *c->allowed);
    c->recompute = calloc(layers, sizeof *c->recompute);
    c->job.layers = calloc(layers, sizeof *c->job.layers);
    c->job.units = calloc(units, sizeof *c->job.units);
    c->job.activations = calloc((size_t)job->activation_count + 1, sizeof *c->job.activations);
    c->job.workspaces = calloc(2 * layers, sizeof *c->job.workspaces);
    c->times.slot_s = calloc(2 * layers, sizeof *c->times.slot_s);
    c->times.recompute_s = calloc(layers, sizeof *c->times.recompute_s);
    c->times.keeps = c->fine->times->keeps ? calloc(layers, sizeof *c->times.keeps) : NULL;
    *inside = calloc(2 * layers + 1, sizeof **inside);
    bool all = c->joined_layer && c->first_layer && c->joined_unit && c->fit_elements && c->uses && c->allowed &&
               c->recompute && c->job.layers && c->job.units && c->job.activations && c->job.workspaces &&
               c->times.slot_s && c->times.recompute_s && (c->times.keeps || !c->fine->times->keeps) && *inside;
    return all ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for joined layers");
}

sluice_status slc_coarse_init(slc_coarse *c, const slc_slot_request *request)
{
    int64_t *inside;
    *c = (slc_coarse){.fine = request, .request = *request, .job = *request->job, .times = *request->times};
    c->job.layer_count = c->job.unit_count = c->job.activation_count = c->job.workspace_count = 0;
    c->job.can_recompute = NULL;
    sluice_status status = allocate(c, &inside);
    if (!status) {
        join_layers(c);
        for (uint32_t l = 0; l < c->job.layer_count; l++) c->job.layers[l] = request->job->layers[c->first_layer[l]];
        join_times(c);
        join_units(c);
        spread_latency(c);
        join_activations(c, inside);
        join_workspaces(c, inside);
        c->request.job = &c->job;
        c->request.times = &c->times;
        c->request.allowed = c->allowed;
        c->request.recompute = request->recompute ? c->recompute : NULL;
        give_room(c);
    }
    free(inside);
    if (status) slc_coarse_fini(c);
    return status;
}

void slc_coarse_fini(slc_coarse *c)
{
    free(c->times.recompute_s);
    free(c->times.keeps);
    free(c->times.slot_s);
    free(c->job.workspaces);
    free(c->job.activations);
    free(c->job.units);
    free(c->job.layers);
    free(c->recompute);
    free(c->allowed);
    free(c->uses);
    free(c->fit_elements);
    free(c->joined_unit);
    free(c->first_layer);
    free(c->joined_layer);
    *c = (slc_coarse){0};
}

/* ---- Back to the real job ---- */

/* A part of a joined flow that one member moves. */
typedef struct {
    slc_flow flow;  /* its position is that of the joined job */
    uint32_t order; /* among the parts of one kind and window at one position: who is ready first, or needed first */
    double amount;  /* elements */
} part;

typedef struct {
    const slc_coarse *coarse;
    part *parts;
    uint32_t count;
    uint32_t *members, *first; /* units by joined unit; [joined units + 1] where those of each begin */
} refining;

/* Returns true if units of later layers are ready, or needed, before those of earlier ones. */
static bool is_ready_last_first(const slc_flow *flow)
{
    return flow->kind == SLC_FLOW_REDUCE || flow->kind == SLC_FLOW_EXCHANGE || flow->window;
}

static bool add_part(refining *r, const slc_flow *flow, uint32_t unit, double fraction)
{
    const slc_job *job = r->coarse->fine->job;
    if (!SLC_ROOM_FOR_ONE(r->parts, r->count)) return false;
    uint32_t layer = job->units[unit].uses[0].layer;
    part *p = &r->parts[r->count++];
    *p = (part){*flow, is_ready_last_first(flow) ? job->layer_count - layer : layer,
                fraction * (double)job->units[unit].elements};
    p->flow.unit = unit;
    p->flow.fraction = fraction;
    return true;
}

/* Lists the members of joined units, sorted by their layers. */
static void list_members(refining *r)
{
    const slc_coarse *c = r->coarse;
    const uint32_t units = c->fine->job->unit_count;
    for (uint32_t u = 0; u < units; u++) r->first[c->joined_unit[u] + 1]++;
    for (uint32_t j = 0; j < c->job.unit_count; j++) r->first[j + 1] += r->first[j];
    for (uint32_t u = 0; u < units; u++) {
        uint32_t first = r->first[c->joined_unit[u]], end = r->first[c->joined_unit[u] + 1], at = first;
        while (at < end && r->members[at] != SLC_NONE) at++;
        r->members[at] = u;
    }
}

/* Gives each of many members as a whole to the flow that holds its middle, so that no latency is paid twice. */
static bool divide_among_many(refining *r, const slc_flow *flows, uint32_t count, const uint32_t *members,
                              uint32_t member_count)
{
    const slc_job *job = r->coarse->fine->job;
    const double all = (double)r->coarse->job.units[flows[0].unit].elements;
    double before = 0, flown = flows[0].fraction;
    for (uint32_t k = 0, f = 0; k < member_count; k++) {
        uint32_t unit = members[is_ready_last_first(&flows[0]) ? member_count - 1 - k : k];
        double share = (double)job->units[unit].elements / all;
        while (f + 1 < count && flown < before + share / 2) flown += flows[++f].fraction;
        if (!add_part(r, &flows[f], unit, 1)) return false;
        before += share;
    }
    return true;
}

/* Divides the flows of one family, sorted by position, among the members of its unit. Many members move one after
 * another, and those that are ready or needed first move first. Few members each have the same flows. */
static bool divide_family(refining *r, const slc_flow *flows, uint32_t count)
{
    const uint32_t first = r->first[flows[0].unit], members = r->first[flows[0].unit + 1] - first;
    if (members >= MANY) return divide_among_many(r, flows, count, &r->members[first], members);
    for (uint32_t k = 0; k < members; k++)
        for (uint32_t f = 0; f < count; f++)
            if (!add_part(r, &flows[f], r->members[first + k], flows[f].fraction)) return false;
    return true;
}

static bool divide_flows(refining *r, const slc_slot_solution *solution)
{
    for (uint32_t i = 0, end; i < solution->flow_count; i = end) {
        for (end = i + 1;
             end < solution->flow_count && slc_flow_same_operation(&solution->flows[i], &solution->flows[end]);)
            end++;
        if (!divide_family(r, &solution->flows[i], end - i)) return false;
    }
    return true;
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const part *x, const part *y)
{
    if (x->flow.kind != y->flow.kind) return x->flow.kind < y->flow.kind ? -1 : 1;
    int by = compare(x->flow.micro_batch, y->flow.micro_batch);
    if (!by) by = compare(x->flow.window, y->flow.window);
    return by ? by : compare(x->flow.position, y->flow.position);
}

static int by_place_and_order(const void *a, const void *b)
{
    const part *x = a, *y = b;
    int by = by_place(x, y);
    if (!by) by = compare(x->order, y->order);
    return by ? by : compare(x->flow.unit, y->flow.unit);
}

static int by_family(const void *a, const void *b)
{
    const slc_flow *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    int by = compare(x->unit, y->unit);
    if (!by) by = compare(x->micro_batch, y->micro_batch);
    if (!by) by = compare(x->window, y->window);
    return by ? by : compare(x->position, y->position);
}

/* Returns the real position of a part of a joined flow that is `share` of the way through the joined position. */
static uint32_t real_position(const slc_coarse *c, uint32_t position, double share)
{
    const uint32_t cycle = slc_job_slots(&c->job), slot = position / 2 % cycle, pass = position / 2 / cycle;
    uint32_t count, first = first_member(c, slot, &count), at = position & 1 ? count - 1 : (uint32_t)(share * count);
    if (at >= count) at = count - 1;
    return 2 * (pass * slc_job_slots(c->fine->job) + first + at) + (position & 1);
}

/* Spreads the flows of a joined slot evenly over the slots that it stands for, in their order. */
static void spread_parts(refining *r)
{
    qsort(r->parts, r->count, sizeof *r->parts, by_place_and_order);
    for (uint32_t i = 0, end; i < r->count; i = end) {
        double all = 0, before = 0;
        for (end = i; end < r->count && !by_place(&r->parts[i], &r->parts[end]); end++) all += r->parts[end].amount;
        const uint32_t joined = r->parts[i].flow.position;
        for (uint32_t k = i; k < end; before += r->parts[k++].amount)
            r->parts[k].flow.position = real_position(r->coarse, joined, (before + r->parts[k].amount / 2) / all);
    }
}

static bool moves(const slc_flow_family *family, const slc_flow *flow, slc_strategy strategy)
{
    return family->kind == flow->kind && family->micro_batch == flow->micro_batch && family->window == flow->window &&
           slc_has(family->strategies, strategy);
}

/* Moves flows into the ranges of their own families, which in a joined slot may begin or end in the middle. */
static sluice_status keep_to_ranges(refining *r, const slc_slot_solution *solution)
{
    const slc_coarse *c = r->coarse;
    const uint32_t units = c->fine->job->unit_count;
    slc_slot_model_parts parts;
    sluice_status status = slc_slot_parts_init(&parts, c->fine, SLC_EVERYTHING);
    if (status) return status;
    uint32_t *first = calloc((size_t)units + 2, sizeof *first);
    for (uint32_t i = 0; first && i < parts.family_count; i++) first[parts.families[i].unit + 1] = i + 1;
    for (uint32_t u = 0; first && u < units; u++)
        if (first[u + 1] < first[u]) first[u + 1] = first[u];
    for (uint32_t k = 0; first && k < r->count; k++) {
        slc_flow *flow = &r->parts[k].flow;
        const slc_strategy strategy = solution->strategies[c->joined_unit[flow->unit]];
        uint32_t i = first[flow->unit];
        while (i < first[flow->unit + 1] && !moves(&parts.families[i], flow, strategy)) i++;
        if (i == first[flow->unit + 1]) continue;
        if (flow->position < parts.families[i].first) flow->position = parts.families[i].first;
        if (flow->position > parts.families[i].last) flow->position = parts.families[i].last;
    }
    slc_slot_parts_fini(&parts);
    if (!first) status = slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %u units", units);
    free(first);
    return status;
}

static bool is_last_reduction(const refining *r, const slc_flow *flow)
{
    return flow->kind == SLC_FLOW_REDUCE && flow->micro_batch + 1 == r->coarse->fine->job->micro_batches;
}

/* Values are gathered no earlier than their unit's gradient is reduced. In a joined slot reductions come first; in the
 * slots that it stands for, a gather that would be too early moves to the last reduction. */
static bool delay_gathers(refining *r)
{
    const slc_job *job = r->coarse->fine->job;
    uint32_t *reduced = calloc((size_t)job->unit_count + 1, sizeof *reduced);
    if (!reduced) return false;
    for (uint32_t i = 0; i < r->count; i++) {
        const slc_flow *flow = &r->parts[i].flow;
        if (is_last_reduction(r, flow) && flow->position > reduced[flow->unit]) reduced[flow->unit] = flow->position;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        slc_flow *flow = &r->parts[i].flow;
        bool follows = flow->kind == SLC_FLOW_GATHER_VALUE ||
                       (flow->kind == SLC_FLOW_WINDOW && !flow->micro_batch && !flow->window);
        if (follows && flow->position < reduced[flow->unit]) flow->position = reduced[flow->unit];
    }
    free(reduced);
    return true;
}

/* Adds the windows that a member has beyond those of its joined unit: the joined unit's last window may cover a forward
 * and a backward slot for which the member has a window each. */
static bool add_missing_windows(refining *r, const slc_slot_solution *solution)
{
    const slc_coarse *c = r->coarse;
    const slc_job *job = c->fine->job;
    slc_window window;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        if (!slc_gathers_windows(solution->strategies[c->joined_unit[u]])) continue;
        const slc_unit *unit = &job->units[u], *joined = &c->job.units[c->joined_unit[u]];
        uint32_t w = slc_unit_window_count(&c->job, joined, true);
        for (; slc_unit_window(job, unit, true, w, &window); w++)
            for (uint32_t m = 0; m < job->micro_batches; m++) {
                slc_flow flow = {SLC_FLOW_WINDOW, u, m, w, 0, 1};
                if (!add_part(r, &flow, u, 1)) return false;
                r->parts[r->count - 1].flow.position = 2 * (m * slc_job_slots(job) + window.first_slot) - 1;
            }
    }
    return true;
}

static sluice_status take_over(const refining *r, slc_slot_solution *solution)
{
    const slc_coarse *c = r->coarse;
    const slc_job *job = c->fine->job;
    slc_slot_solution fine = *solution;
    fine.strategies = calloc((size_t)job->unit_count + 1, sizeof *fine.strategies);
    fine.recompute = calloc((size_t)job->layer_count + 1, sizeof *fine.recompute);
    fine.flows = calloc((size_t)r->count + 1, sizeof *fine.flows);
    fine.flow_count = 0;
    if (!fine.strategies || !fine.recompute || !fine.flows) {
        slc_slot_solution_fini(&fine);
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for flows");
    }
    for (uint32_t u = 0; u < job->unit_count; u++) fine.strategies[u] = solution->strategies[c->joined_unit[u]];
    for (uint32_t l = 0; l < job->layer_count; l++) fine.recompute[l] = solution->recompute[c->joined_layer[l]];
    for (uint32_t i = 0; i < r->count; i++) fine.flows[i] = r->parts[i].flow;
    if (r->count) qsort(fine.flows, r->count, sizeof *fine.flows, by_family);
    for (uint32_t i = 0; i < r->count; i++) {
        slc_flow *last = fine.flow_count ? &fine.flows[fine.flow_count - 1] : NULL;
        if (last && !by_family(last, &fine.flows[i]))
            last->fraction += fine.flows[i].fraction;
        else
            fine.flows[fine.flow_count++] = fine.flows[i];
    }
    slc_slot_solution_fini(solution);
    *solution = fine;
    return SLUICE_OK;
}

sluice_status slc_coarse_refine(const slc_coarse *coarse, slc_slot_solution *solution)
{
    const size_t units = (size_t)coarse->fine->job->unit_count + 1;
    refining r = {
        .coarse = coarse, .members = malloc(units * sizeof *r.members), .first = calloc(units + 1, sizeof *r.first)};
    bool fine = r.members && r.first;
    if (fine) {
        memset(r.members, 0xff, units * sizeof *r.members);
        list_members(&r);
        fine = divide_flows(&r, solution);
    }
    if (fine && r.count) spread_parts(&r);
    if (fine) fine = add_missing_windows(&r, solution);
    sluice_status status = fine ? keep_to_ranges(&r, solution) : SLUICE_OK;
    if (fine && !status) fine = delay_gathers(&r);
    if (!fine) status = slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for flows");
    if (!status) status = take_over(&r, solution);
    free(r.parts);
    free(r.first);
    free(r.members);
    return status;
}

void slc_coarse_refine_prices(const slc_coarse *c, const slc_prices *prices, uint32_t micro_batches, slc_prices *fine)
{
    const uint32_t cycle = slc_job_slots(&c->job), real = slc_job_slots(c->fine->job);
    for (uint32_t s = 0; s < micro_batches * cycle; s++) {
        uint32_t count, first = s / cycle * real + first_member(c, s % cycle, &count);
        for (uint32_t i = 0; i < count; i++) fine->room[first + i] = prices->room[s];
        fine->memory[2 * first] = prices->memory[2 * s];
        fine->memory[2 * (first + count - 1) + 1] = prices->memory[2 * s + 1];
    }
}
