#!/usr/bin/env python3
"""Makes tokenizer_bpe/ and tokenizer_wordpiece/ next to this file: small tokenizers, and what texts become.

Run once, with tokenizers installed:   python3 make_tokenizers.py [FOLDER]
(the committed files came from tokenizers 0.23.3)

Each folder has tokenizer.json, trained on this project's documents, and samples.json: a list of
  {"text", "ids", "special_ids" (with the special tokens of a text), "decoded", "decoded_special" (those kept)}
The byte-level BPE is GPT-2's, in the older of the two forms of merges; the WordPiece is that of BERT without case.
"""
import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ['', ' ', 'Hello world', ' Hello  world \n\n', "I'll say it's DON'T, they've 'tis",
         'The planner decides, layer by layer.', 'tabs\tand\r\nlines\n \n  x', 'naïve café ÀÉÎ Ünïcode ß ẞ',
         'e\u0301\u0327 a\u0300\u0316 \u0345\u0301\u0334', 'ﬁ ½ Ⅷ ٣٤ x² H₂O', 'İstanbul ΣΊΣΥΦΟΣ ǅ', '漢字かな交じり文 한국어 각',
         'привет, мир! שָׁלוֹם مرحبا हिन्दी ไทย', '👩‍👩‍👧 🇩🇪 😀!', 'a\u00a0b\u3000c\u2028d\u200be\ufefff\u0085g',
         'nul\0bell\a\u007f del\ufffd', '<|endoftext|>a<|endoftext|> <left> <right> b',
         '[CLS] [MASK] x [SEP]MASK [UNK]', 'Word word Words (Word) wordWord', 'x' * 101, 'ab' * 300,
         ' ' * 50 + 'x' + '!' * 20, '1,234.5 = $6%', 'http://a.b/c?d=e&f_g',
         'don \' t , is this . a do not sentence ?', '\U0001e5d0\u1c8a\u0898\U00010d50 ꟑ']


def documents():
    root = HERE.parents[1]
    pages = 'LICENSE', 'docs/planning.md', 'docs/guide.md', 'docs/models.md'
    return [(root / page).read_text() for page in pages] + TEXTS * 3


def added():
    return [AddedToken('<left>', lstrip=True), AddedToken('<right>', rstrip=True, normalized=False),
            AddedToken('Word', single_word=True)]


def bpe():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(documents(), trainers.BpeTrainer(
        vocab_size=700, special_tokens=['<|endoftext|>'], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    made.add_tokens(added())
    return made


def wordpiece():
    made = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(documents(), trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']))
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1',
                                                        special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    made.add_tokens(added())
    return made


def sample(made, text):
    ids, special = (made.encode(text, add_special_tokens=add).ids for add in (False, True))
    return dict(text=text, ids=ids, special_ids=special, decoded=made.decode(special),
                decoded_special=made.decode(special, skip_special_tokens=False))


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, made in ('tokenizer_bpe', bpe()), ('tokenizer_wordpiece', wordpiece()):
        (out / name).mkdir(exist_ok=True)
        content = json.loads(made.to_str())
        if name == 'tokenizer_bpe':
            content['model']['merges'] = [' '.join(pair) for pair in content['model']['merges']]
        # One line for each section, so that a change can be read.
        (out / name / 'tokenizer.json').write_text(
            '{\n' + ',\n'.join(f'{json.dumps(key)}: {json.dumps(value)}' for key, value in content.items()) + '\n}\n')
        (out / name / 'samples.json').write_text(
            '[\n' + ',\n'.join(json.dumps(sample(made, text)) for text in TEXTS) + '\n]\n')


if __name__ == '__main__':
    main()
