/* Lists of rows, for parameters of which a layer reads only some rows. Private to lib/engine. */
#pragma once

#include "lib/base/row_list.h"

#include <stdbool.h>

/* Puts each different row of rows[0, count), all in [0, row_count), into `list`, which has room for `most`, and the
 * position of rows[i] there into places[i]. `rows` and `places` may be the same. `list` NULL: both results are left
 * out. False: there are more than `most`, and nothing was written. `marks` has a bit for every row, zero before the
 * call and after it. O(count + row_count / 64). */
bool slc_row_list_make(slc_row_mark *marks, uint64_t row_count, const int32_t *rows, uint64_t count, uint64_t most,
                       slc_row_list *list, int32_t *places);
