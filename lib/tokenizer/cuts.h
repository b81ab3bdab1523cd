/* Where a text may be cut so that the tokens of its parts are those of the whole: before a space or the end of a line,
 * after a character that no token joins to it. Private to lib/tokenizer. */
#ifndef SLC_TOKENIZER_CUTS_H
#define SLC_TOKENIZER_CUTS_H

#include <stdint.h>

/* The sum of the kinds of white space before which a text may be cut. */
enum { SLC_CUT_SPACE = 1, SLC_CUT_LINE = 2 };

typedef struct {
    uint8_t after[128]; /* after this character of ASCII */
    uint8_t after_others;
} slc_cuts;

struct slc_tokenizer;
/* Fills tokenizer->cuts; all else of the tokenizer has been read. */
void slc_cuts_learn(struct slc_tokenizer *tokenizer);

#endif
