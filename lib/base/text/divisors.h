/* The numbers that divide another one, in words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes the divisors of `number` from 2 on, as "2, 3, 6", as far as they fit whole; nothing for 1. Any thread. */
void slc_divisors_text(uint32_t number, char *out, size_t bytes);
