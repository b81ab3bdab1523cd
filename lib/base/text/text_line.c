#include "lib/base/text/text_line.h"

#include <stdarg.h>
#include <stdio.h>

void slc_text_line_add(slc_text_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line->out + line->used, line->bytes - line->used, format, args);
    va_end(args);
    if (length > 0) line->used += (size_t)length;
    if (line->used >= line->bytes) line->used = line->bytes - 1;
}
