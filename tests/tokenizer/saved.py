#!/usr/bin/env python3
"""Compares what transformers makes of a saved folder with tokenizers: saved.py SLUICE FOLDER [SEED [COUNT]]

A model is trained for a step and saved with each of the tokenizers of live.py, in FOLDER, which must be new or empty.
AutoTokenizer of the saved folder must make the tokens of the tokenizer.json that was given, of COUNT (default 200) random
texts, also if files of another tokenizer lie beside it. Prints a line for each tokenizer, with the number of texts
that would differ without the tokenizer_config.json that was written; the exit code is 1 if any text differs with it."""
import pathlib
import random
import subprocess
import sys

import tokenizers
import transformers

import live

TEXTS = ['Hello World, Ünïcode ÀÉ [MASK] <|endoftext|> 漢字', ' leading', 'leading', 'two  spaces\n\nnew',
         'ﬁ ½ CAPS', '<left> x <right> y Word word [CLS]']


def save(sluice, given, out, family):
    subprocess.run([sluice, 'train', '--model', family, '--size', 'nano', '--tokenizer', given, '--data',
                    live.ROOT / 'LICENSE', '--steps', '1', '--context', '16', '--batch', '1', '--schedule', 'one_ahead',
                    '--eval-batches', '0', '--save-weights', out], check=True, stdout=subprocess.DEVNULL)


def differing(folder, reference, texts):
    """The number of texts that have other tokens, or are decoded otherwise."""
    auto = transformers.AutoTokenizer.from_pretrained(str(folder))
    count = 0
    for text in texts:
        plain, framed = (reference.encode(text, add_special_tokens=special).ids for special in (False, True))
        count += (auto(text, add_special_tokens=False)['input_ids'] != plain or auto(text)['input_ids'] != framed
                  or auto.decode(framed) != reference.decode(framed, skip_special_tokens=False))
    return count


def main():
    sluice, work = sys.argv[1], pathlib.Path(sys.argv[2])
    random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    transformers.logging.set_verbosity_error()
    texts = TEXTS + [''.join(random.choices(live.PIECES + [' ', 'word ', 'Cat '], k=random.randint(1, 12)))
                     for _ in range(count)]
    print(f'transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, {len(texts)} texts')
    failed = 0
    for name, made, _ in live.tokenizers_made():
        given, out = work / name, work / f'{name}_saved'
        given.mkdir(parents=True)
        made.save(str(given / 'tokenizer.json'))
        save(sluice, given, out, 'bert' if isinstance(made.model, tokenizers.models.WordPiece) else 'gpt2')
        reference = tokenizers.Tokenizer.from_file(str(given / 'tokenizer.json'))
        config = out / 'tokenizer_config.json'
        written = config.read_text()
        saved = differing(out, reference, texts)
        config.unlink()
        without = differing(out, reference, texts)
        config.write_text(written)
        (out / 'special_tokens_map.json').write_text('{"mask_token": "word", "additional_special_tokens": ["new"]}')
        (out / 'added_tokens.json').write_text('{"Cat": 5}')
        beside = differing(out, reference, texts)
        print(f'{name}: {saved} differ, {beside} beside files of another tokenizer, {without} without the file')
        failed |= saved + beside > 0
    return failed


sys.exit(main())
