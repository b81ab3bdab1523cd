#!/usr/bin/env python3
"""Writes lib/tokenizer/unicode/unicode_differences.c: where the classes of Hugging Face's tokenizers differ from those of
utf8proc.

Run once, with tokenizers installed and the utf8proc that Sluice is built with:   python3 make_unicode.py
(the committed file came from tokenizers 0.23.3 and utf8proc 2.8.0, which has Unicode 15.0)

Each class is asked of tokenizers for every code point, alone or between letters, through the public functions that use
it; nothing is taken from its sources.
"""
import ctypes
import ctypes.util
import pathlib

import tokenizers
from tokenizers import normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = 'Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co'.split()
DECOMPOSE, COMPAT = 1 << 4, 1 << 2  # as utf8proc.h numbers them
library = ctypes.CDLL(ctypes.util.find_library('utf8proc'))
library.utf8proc_unicode_version.restype = library.utf8proc_version.restype = ctypes.c_char_p


class Property(ctypes.Structure):
    _fields_ = [('category', ctypes.c_int16), ('combining_class', ctypes.c_int16)]


library.utf8proc_get_property.restype = ctypes.POINTER(Property)


def category(c):
    return CATEGORIES[library.utf8proc_category(c)]


def decomposed(c, options):
    out = (ctypes.c_int32 * 18)()
    return ''.join(chr(x) for x in out[:library.utf8proc_decompose_char(c, out, 18, options, None)])


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def array(name, points):
    """A table, or nothing for no code points."""
    rows = ', '.join('{0x%X, 0x%X}' % tuple(r) for r in ranges(points))
    return f'static const slc_rune_range {name}[] = {{{rows}}};\n' if points else ''


def difference(name, theirs, ours):
    also, but = theirs - ours, ours - theirs
    text = array(name + '_also', also) + array(name + '_but', but)
    print(f'{name}: {len(also)} code points in {len(ranges(also))} ranges more, {len(but)} in {len(ranges(but))} fewer')
    parts = [f'{name}_also, ' if also else 'NULL, ', f'{name}_but, ' if but else 'NULL, ',
             f'{len(ranges(also))}, {len(ranges(but))}']
    return text + f'const slc_rune_difference slc_{name}_difference = {{{"".join(parts)}}};\n\n'


def chosen(test):
    return {c for c in POINTS if test(c)}


def removed_by(normalizer):
    return chosen(lambda c: normalizer.normalize_str(chr(c)) == '')


def bert(**more):
    return normalizers.BertNormalizer(**dict(dict(clean_text=False, handle_chinese_chars=False, strip_accents=False,
                                                  lowercase=False), **more))


def matching(pattern):
    split = pre_tokenizers.Split(tokenizers.Regex(pattern), 'removed')
    return chosen(lambda c: split.pre_tokenize_str(chr(c)) == [])


def between_letters(pre_tokenizer, pieces):
    return chosen(lambda c: len(pre_tokenizer.pre_tokenize_str('a' + chr(c) + 'b')) == pieces)


def in_categories(names):
    return chosen(lambda c: category(c) in names.split())


def combining():
    """Those before or after which a mark of another class goes."""
    form = normalizers.NFD()
    weak, strong = '\u0334', '\u0345'  # the least class and the greatest
    whole = chosen(lambda c: form.normalize_str(chr(c)) == chr(c) == decomposed(c, DECOMPOSE))
    theirs = {c for c in whole if form.normalize_str('a' + chr(c) + weak) != 'a' + chr(c) + weak or
              form.normalize_str('a' + strong + chr(c)) != 'a' + strong + chr(c)}
    return theirs, {c for c in whole if library.utf8proc_get_property(c)[0].combining_class}


def undecomposed():
    """Code points that utf8proc takes apart and tokenizers does not; other differences would stop this."""
    out = set()
    for form, options in (normalizers.NFD(), DECOMPOSE), (normalizers.NFKD(), DECOMPOSE | COMPAT):
        for c in POINTS:
            theirs, ours = form.normalize_str(chr(c)), decomposed(c, options)
            if theirs != ours:
                assert theirs == chr(c), hex(c)
                out.add(c)
    return out


def lowercase():
    lower = normalizers.Lowercase()
    rows = []
    for c in POINTS:
        theirs, ours = lower.normalize_str(chr(c)), library.utf8proc_tolower(c)
        if c == 0x130 or theirs == chr(ours):
            continue
        distance = ord(theirs) - c
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == distance:
            rows[-1][1] = c
        else:
            rows.append([c, c, distance])
    print(f'lowercase: {len(rows)} ranges')
    text = ', '.join('{0x%X, 0x%X, %d}' % tuple(row) for row in rows)
    return (f'const slc_lowercase_range slc_lowercase_differences[] = {{{text}}};\n'
            f'const size_t slc_lowercase_difference_count = {len(rows)};\n')


def main():
    letters = 'Lu Ll Lt Lm Lo'
    marks = 'Mn Mc Me'
    text = f'''/* The classes of these characters in Hugging Face's tokenizers {tokenizers.__version__} differ from \
utf8proc {library.utf8proc_version().decode()}
 * (Unicode {library.utf8proc_unicode_version().decode()}). Written by tests/golden/make_unicode.py. \
lib/tokenizer/golden_tokens_test.c covers this file. */
#include "lib/tokenizer/unicode/unicode_differences.h"

'''
    text += difference('letter', matching(r'\p{L}'), in_categories(letters))
    text += difference('number', matching(r'\p{N}'), in_categories('Nd Nl No'))
    text += difference('word', between_letters(pre_tokenizers.Whitespace(), 1),
                       in_categories(f'{letters} {marks} Nd Nl Pc'))
    control = removed_by(bert(clean_text=True)) - {0xFFFD}
    text += difference('control', control, in_categories('Cc Cf Co') - {9, 10, 13})
    text += difference('punctuation', between_letters(pre_tokenizers.BertPreTokenizer(), 3) - set(range(0x80)),
                       in_categories('Pc Pd Ps Pe Pi Pf Po') - set(range(0x80)))
    text += difference('accent', removed_by(bert(strip_accents=True)), in_categories('Mn'))
    text += difference('mark', removed_by(normalizers.StripAccents()), in_categories(marks))
    text += difference('combining', *combining())
    text += difference('decomposed', set(), undecomposed())
    text += lowercase()
    (pathlib.Path(__file__).resolve().parents[2] / 'lib/tokenizer/unicode/unicode_differences.c').write_text(text)


if __name__ == '__main__':
    main()
