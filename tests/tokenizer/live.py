#!/usr/bin/env python3
"""Compares `sluice-lab tokenize` with tokenizers: live.py LAB FOLDER [SEED [COUNT]]

FOLDER gets the tokenizers that are made, one for each way to set one up; SEED chooses the random texts, COUNT (default
4000) says how many short ones each of them gets. Texts that differ are printed, shortened to a few characters around the
difference, and the exit code is 1 then."""
import pathlib
import random
import subprocess
import sys
import unicodedata

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF),
           (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
           (0x20D0, 0x20FF), (0x2190, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xAD00), (0xF900, 0xFA20),
           (0xFB00, 0xFDFF), (0xFE00, 0xFE2F), (0xFF00, 0xFFEF), (0x1D400, 0x1D4FF), (0x1F1E6, 0x1F1FF),
           (0x1F300, 0x1F64F), (0x20000, 0x20100), (0xE0100, 0xE01EF), (0x0, 0x1F), (0x7F, 0x9F)]
PIECES = ["'s", "'ll", "'RE", "don't", 'isn’t', '  ', '\n\n', '\t', '\r\n', ' \u00a0', '\u3000', '\u200b', '\u200d',
          '\ufeff', '\u0085', '\u2028', '\u180e', '\0', '\ufffd', 'e\u0301\u0327', '\u0345\u0301\u0334',
          '\u1100\u1161\u11a8', '각', 'İstanbul', 'ΣΊΣΥΦΟΣ', 'ẞ', 'ǅ', '👩‍👩‍👧', '🇩🇪', '½', '٣', 'Ⅷ', '1,234.5', '漢字',
          '々', 'ｶﾞ', 'ﬁ', '…', '—', '<|endoftext|>', '[MASK]', '[CLS]', ' [MASK] ', '<left>', '<right>', 'Word',
          'word', 'WORD', 'Ünïcode', '##ing', 'http://a.b/c?d=e&f', 'foo_bar', 'x' * 101, 'ab' * 60, '!' * 30,
          ' ' * 40, '\n' * 20, 'a' * 300]

MARKS = [c for c in range(0x110000) if unicodedata.combining(chr(c))] + list(range(0x1160, 0x11C3)) + [0x11930]
LETTERS = [ord(c) for c in 'aeiouAEIOUscnrlkg'] + [0x11935] + list(range(0x1100, 0x1113)) + [
    c for c in range(0x110000) if unicodedata.decomposition(chr(c))[:1].isalnum()]


def documents():
    return [path.read_text() for path in sorted(ROOT.glob('docs/*.md')) + [ROOT / 'README.md', ROOT / 'LICENSE']]


def added(*more):
    return [AddedToken('<left>', lstrip=True), AddedToken('<right>', rstrip=True, normalized=False),
            AddedToken('Word', single_word=True), AddedToken('Ünïcode'), *more]


def bpe(texts, prefix_space=False, regex=True, alphabet=True, **settings):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=regex)
    made.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=700, special_tokens=['<|endoftext|>', '<unk>'], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else []))
    for name, value in settings.items():
        setattr(made.model, name, value)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return made


def bert(texts, words=pre_tokenizers.BertPreTokenizer(), normalizer=None, **settings):
    made = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    made.normalizer = normalizer or normalizers.BertNormalizer(**settings)
    made.pre_tokenizer = words
    made.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'], show_progress=False))
    made.decoder = decoders.WordPiece(cleanup=bool(settings.get('lowercase', True)))
    made.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    return made


def tokenizers_made():
    """Name, tokenizer, whether it is also asked about every code point."""
    texts = documents() + [''.join(PIECES), ' '.join(PIECES)]
    plain = bpe(texts)
    yield 'bpe', plain, True
    plain.add_tokens(added())
    yield 'bpe_added', plain, False
    yield 'bpe_prefix_space', bpe(texts, prefix_space=True), False
    yield 'bpe_ignore_merges', bpe(texts, ignore_merges=True), False
    yield 'bpe_no_regex', bpe(texts, regex=False), False
    yield 'bpe_no_alphabet', bpe(texts, alphabet=False), False
    yield 'bpe_unknown', bpe(texts, alphabet=False, unk_token='<unk>', fuse_unk=False), False
    yield 'bpe_unknown_fused', bpe(texts, alphabet=False, unk_token='<unk>', fuse_unk=True), False
    form = bpe(texts)
    form.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    form.add_tokens(added())
    form.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        single='<|endoftext|> <unk> $A <|endoftext|>', special_tokens=[('<|endoftext|>', 0), ('<unk>', 1)])])
    yield 'bpe_normalized', form, False
    yield 'bert', bert(texts), True
    yield 'bert_cased', bert(texts, lowercase=False), False
    yield 'bert_accents', bert(texts, strip_accents=False), False
    no_zero = [text.replace('\0', '') for text in texts]  # no key of an object may have one
    yield 'bert_raw', bert(no_zero, clean_text=False, handle_chinese_chars=False, strip_accents=True,
                           lowercase=False), True
    more = bert(no_zero, words=pre_tokenizers.Whitespace(), normalizer=normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase(), normalizers.StripAccents()]))
    more.add_tokens(added())
    more.post_processor = processors.TemplateProcessing(single='[CLS] $0 [SEP]',
                                                        special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    yield 'wordpiece_whitespace', more, True
    yield 'wordpiece_split', bert(no_zero, words=pre_tokenizers.WhitespaceSplit(), normalizer=normalizers.NFD()), False
    form = bert(no_zero, words=pre_tokenizers.WhitespaceSplit(), normalizer=normalizers.NFKC())
    form.decoder = decoders.WordPiece(cleanup=False)
    yield 'wordpiece_nfkc', form, False


def drawn_text(draw, length):
    """Characters of a few scripts, and pieces that are hard."""
    scripts = draw.sample(SCRIPTS, 4)
    out = []
    for _ in range(length):
        kind = draw.random()
        if kind < 0.25:
            out.append(draw.choice(PIECES))
        elif kind < 0.35:
            out.append(' ')
        elif kind < 0.97:
            out.append(chr(draw.randint(*draw.choice(scripts))))
        else:
            c = draw.randrange(0x110000)
            out.append(chr(c) if not 0xD800 <= c < 0xE000 else '\ud7ff')
    return ''.join(out).encode()


def marked_text(draw, length):
    """Letters and combining marks of all kinds, whose order and composition differ between the forms of Unicode."""
    return ''.join(chr(draw.choice(LETTERS if draw.random() < 0.4 else MARKS)) for _ in range(length)).encode()


def damaged(draw, data):
    """Returns the data with some bytes exchanged, left out and put in."""
    data = bytearray(data)
    for _ in range(1 + len(data) // 20):
        at = draw.randrange(len(data) + 1)
        data[at:at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
    return bytes(data)


def long_texts(draw):
    yield b''
    yield from (piece.encode() for piece in PIECES)
    yield from (text.encode() for text in documents())
    yield drawn_text(draw, 400000)  # over a megabyte in one piece
    yield damaged(draw, drawn_text(draw, 50000))
    yield b' ' * 200000
    yield b'a' * 100000 + b'ab' * 50000
    yield ('\u0301\u0334\u0345' * 30000).encode()


def short_texts(draw, count):
    for _ in range(count // 2):
        text = (drawn_text if draw.random() < 0.9 else marked_text)(draw, draw.randrange(40))
        yield text if draw.random() < 0.7 else damaged(draw, text)
        yield draw.randbytes(draw.randrange(30))


def texts_of_all_code_points():
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for i in range(0, len(points), 32):
        yield ' '.join(f"x{c}y {c} 1{c}2{c}{c}!" for c in points[i:i + 32]).encode()


def asked(lab, path, texts, special):
    given = b''.join(b'%d\n%b' % (len(text), text) for text in texts)
    command = [lab, 'tokenize', str(path), '--time'] + (['--special'] if special else [])
    done = subprocess.run(command, input=given, capture_output=True, timeout=1200)
    if done.returncode:
        sys.exit(f'{" ".join(command)}: {done.stderr.decode()}')
    out, at, answers = done.stdout, 0, []
    while at < len(out):
        end = out.index(b'\n', at)
        numbers = [int(x) for x in out[at:end].split()]
        length_end = out.index(b'\n', end + 1)
        length = int(out[end + 1:length_end])
        answers.append((numbers, out[length_end + 1:length_end + 1 + length].decode()))
        at = length_end + 1 + length + 1
    return answers, done.stderr.decode().strip()


def show_difference(name, text, made, numbers, expected):
    at = next((i for i, (a, b) in enumerate(zip(numbers, expected)) if a != b), min(len(numbers), len(expected)))
    print(f'{name}: a text of {len(text)} characters, from token {at}:\n'
          f'  tokenizers {[made.id_to_token(i) for i in expected[at:at + 6]]}\n'
          f'  sluice     {[made.id_to_token(i) for i in numbers[at:at + 6]]}\n'
          f'  after      {made.decode(expected[max(0, at - 8):at], skip_special_tokens=False)!r}\n'
          f'  text       {text[:60]!r}')


def compare(lab, folder, name, made, texts, specials=(False, True)):
    path = pathlib.Path(folder) / f'{name}.json'
    made.save(str(path))
    wrong = 0
    for special in specials:
        answers, speed = asked(lab, path, texts, special)
        read = [text.decode('utf-8', 'replace') for text in texts]
        theirs = made.encode_batch(read, add_special_tokens=special)
        assert len(answers) == len(texts), (len(answers), len(texts))
        for text, (numbers, back), want in zip(read, answers, theirs):
            if wrong > 5:
                return wrong
            if numbers != want.ids:
                show_difference(name, text, made, numbers, want.ids)
                wrong += 1
                continue
            want_back = made.decode(numbers, skip_special_tokens=not special)
            if back != want_back:
                print(f'{name}: decoded to {back[:200]!r}, not {want_back[:200]!r}')
                wrong += 1
    print(f'{name}: {len(texts)} texts, {speed}', flush=True)
    return wrong


def main():
    lab, folder = sys.argv[1:3]
    seed, count = (int(x) for x in (sys.argv[3:] + ['1', '4000'][len(sys.argv) - 3:]))
    draw = random.Random(seed)
    long, points = list(long_texts(draw)), list(texts_of_all_code_points())
    wrong = 0
    for name, made, all_points in tokenizers_made():
        wrong += compare(lab, folder, name, made, long)
        for first in range(0, count, 20000):
            wrong += compare(lab, folder, name, made, list(short_texts(draw, min(20000, count - first))))
        if all_points:
            wrong += compare(lab, folder, name, made, points, (False,))
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
