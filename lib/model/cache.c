/* See cache.h. */
#include "lib/model/cache.h"

sluice_status slc_model_cache_reserve(sluice_model *m)
{
    const sluice_model_config *c = &m->config;
    if (!m->cache.room) return SLUICE_OK;
    m->cache.block_bytes = slc_attention_cache_bytes(c->heads, c->channels / c->heads, m->cache.room);
    return sluice_runtime_reserve(m->rt, "cache of keys and values", c->layers * m->cache.block_bytes);
}

/* Makes the cache's memory. The kernel writes all that it later reads, so nothing is cleared here, and the system gives
 * memory only as the sequence grows. */
sluice_status slc_model_cache_create(sluice_model *m)
{
    if (!m->cache.room) return SLUICE_OK;
    return slc_pinned_create(m->device, m->config.layers * m->cache.block_bytes, &m->cache.memory);
}

slc_attention_cache slc_model_cache_of(const sluice_model *m, uint32_t block)
{
    return (slc_attention_cache){.memory = (unsigned char *)m->cache.memory.base + block * m->cache.block_bytes,
                                 .room = m->cache.room,
                                 .tokens = m->cache.tokens};
}
