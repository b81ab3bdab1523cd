"""Mistakes with data and with names that people bring from other programs, as rows of mistakes.py, and their files."""

import json
import struct

BERT = "--model bert --size nano --context 32 --schedule one_ahead --steps 2"
GPT2 = "--size nano --context 32 --schedule one_ahead --steps 2"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"

DATA_MISTAKES = [
    # Names of options that other programs have
    ("S train --learning-rate 1e-4", 2, ['no option "--learning-rate"', "here it is --lr X"]),
    ("S train --learning_rate=1e-4", 2, ['no option "--learning_rate"', "--lr X"]),
    ("S train --bf16", 2, ['"--bf16"', "--precision bf16"]),
    ("S train --fp16", 2, ['"--fp16"', "--precision bf16"]),
    ("S train --num_train_epochs 3", 2, ["--epochs X"]),
    ("S train --max-steps 3", 2, ["--steps N"]),
    ("S train --per_device_train_batch_size 8", 2, ["--batch N"]),
    ("S train --gradient-accumulation-steps 8", 2, ["--micro-batches N"]),
    ("S train --max_grad_norm 1", 2, ["--clip X"]),
    ("S train --max_seq_length 8", 2, ["--context N"]),
    ("S train --block_size 8", 2, ["--context N"]),
    ("S train --model_name_or_path gpt2", 2, ["--weights PATH"]),
    ("S train --train_file a.json", 2, ["--data PATH"]),
    ("S train --validation_file a.json", 2, ["--eval-data PATH"]),
    ("S train --output_dir out", 2, ["--save-weights DIR", "--save DIR"]),
    ("S train --resume_from_checkpoint run", 2, ["--resume DIR"]),
    ("S eval --max_length 8", 2, ["--context N"]),
    ("S train --warmup_ratio 0.1", 2, ["--warmup N, in steps"]),
    ("S train --gradient_checkpointing", 2, ["--recompute all", "--budget"]),
    ("S train --fsdp full_shard", 2, ['no option "--fsdp"', "--strategy fsdp"]),
    ("S train --report_to wandb", 2, ["--log DIR"]),
    ("S train --num-gpus 2", 2, ["--ranks N"]),
    ("S train --memory 2GB", 2, ["--budget SIZE"]),
    ("S train --text_column sentence", 2, ["--fields text=NAME"]),
    ("S train --lora", 2, ['no option "--lora"', "merge adapters"]),
    ("S train --resume --data text", 2, ["--resume needs DIR", "option --data follows it"]),
    ("S train --budget 60", 2, ['"60" is not a budget', "900MiB", "60%"]),
    ("S train --model gpt2-medium", 2, ["--model gpt2-medium", "gpt2,bert", "hf download", "--weights"]),
    # Names and files of models
    ("S train --weights gpt2", 2, ["--weights", "cannot read gpt2: No such file", "hf download gpt2 --local-dir gpt2"]),
    ("S train -n 3 --weights openai-community/gpt2", 2, ["hf download openai-community/gpt2", "--local-dir gpt2"]),
    ("S eval --weights google-bert/bert-base --data text", 2, ["hf download google-bert/bert-base"]),
    ("S generate --weights gpt2 --prompt a", 2, ["hf download gpt2"]),
    ("S train --weights weights/model.safetensors", 2, ["one file of a model", "give its folder, weights"]),
    ("S train --weights torch", 2, ["PyTorch's", "save_pretrained"]),
    ("S train --weights lora", 2, ["adapter (LoRA)", "merge_and_unload"]),
    ("S train --weights pointers", 2, ["Git LFS", "git lfs pull"]),
    ("S train --weights run " + GPT2, 2, ["a checkpoint of sluice train", "--resume run"]),
    ("S eval --weights run --data text", 2, ["a checkpoint of sluice train", "sluice weights run -o NEW"]),
    ("S train --resume weights " + GPT2, 2, ["holds weights and no checkpoint", "--weights weights"]),
    ("S weights weights -o new", 2, ["sluice weights: weights: holds weights and no checkpoint"]),
    ("S weights", 2, ["name the folder of --save"]),
    ("S train --tokenizer gpt2 --data text " + GPT2, 2, ["hf download gpt2"]),
    ("S train --tokenizer old_bpe --data text " + GPT2, 2, ["vocab.json and merges.txt", "AutoTokenizer"]),
    ("S train --tokenizer old_bpe/vocab.json --data text " + GPT2, 2, ["vocab.json and merges.txt"]),
    ("S train --tokenizer old_wordpiece --data text " + BERT, 2, ["vocab.txt", "AutoTokenizer"]),
    ("S train --tokenizer pieces --data text " + GPT2, 2, ["SentencePiece"]),
    # The length of a run
    ("S train --epochs 2 --steps 5", 2, ["--epochs 2", "--steps 5", "one of them"]),
    ("S train --epochs -1", 2, ["--epochs -1", "from 0"]),
    ("S train --epochs 1 --optimizer onebit_adam", 2, ["--epochs", "--freeze-step"]),
    # Files that are no text
    ("S train --data list.json", 2, ["--data", "one list of records", "jq -c '.[]'"]),
    ("S train -n 3 --data list.json", 2, ["one list of records", "jq -c '.[]'"]),
    ("S train --data pretty.json", 2, ["over several lines", "jq -c"]),
    ("S train --data utf16", 2, ["UTF-16LE", "iconv -f UTF-16LE"]),
    ("S train --data latin1", 2, ["latin1, line 3", "byte 0xe9", "iconv -f LATIN1", "--data-type text"]),
    ("S train --data nuls", 2, ["nuls, line 2", "NUL", "--data-type text"]),
    ("S train --data train.bin", 2, ["train.bin", "tokens of 2 bytes", "--data-type uint16"]),
    ("S train --data odd.bin --data-type uint16 " + GPT2, 2, ["odd.bin", "even number"]),
    ("S train --data table.parquet", 2, ["table.parquet", "Parquet"]),
    ("S train --data text.gz", 2, ["text.gz", "gunzip"]),
    ("S train --data photos " + GPT2, 2, ["photos", "--model vit"]),
    ("S train --data imdb " + GPT2, 2, ["cannot read imdb", 'load_dataset("imdb"', "to_json"]),
    # Records
    ("S train --data other.jsonl", 2, ['"body", "stars"', "--fields text=NAME,label=NAME"]),
    ("S train -n 2 --data other.csv", 2, ['"body", "stars"', "--fields text=NAME", "--data-type text"]),
    ("S train --data headless.csv " + GPT2, 2,
     ["headless.csv", "names no columns", "text and label", "--data-type text"]),
    ("S train -n 2 --data headless.csv --head classes " + BERT, 2, ["headless.csv", "names no columns"], {"early": True}),
    ("S train --data semicolons.csv " + GPT2, 2, ["semicolons.csv", "semicolons", "delimiter=", "records.csv"]),
    ("S train --data words.jsonl " + GPT2, 2, ["words.jsonl", "first line is no object", '{"text": "..."}']),
    ("S train --data sharegpt.jsonl " + GPT2, 2, ["sharegpt.jsonl", "another form", "jq -c", "chat.jsonl", ".from"]),
    ("S train --data alpaca.jsonl " + GPT2, 2, ["alpaca.jsonl", "jq -c", ".instruction"]),
    ("S train --data pairs.jsonl " + GPT2, 2, ["pairs.jsonl", "jq -c", ".completion"]),
    ("S train --data reviews.jsonl --fields body=text", 2, ["--fields", "text=NAME", "text_pair"]),
    ("S train --data reviews.jsonl --fields text=", 2, ["--fields", "text=NAME"]),
    ("S train --data reviews.jsonl --fields text=body " + GPT2, 2, ["--fields text=body", 'no field "body"']),
    ("S train --data reviews.jsonl,text", 2, ["give files of one kind", "records", "text"]),
    ("S train --data few.jsonl --head classes " + BERT, 2, ["few.jsonl", "too few", "--eval-data"]),
    ("S train --data same.jsonl --head classes " + BERT, 2, ["same.jsonl", "nothing to tell apart"]),
    ("S train --data texts.jsonl --head classes " + BERT, 2, ["texts.jsonl", '"label"', "--fields label=NAME"]),
    ("S train --data headed.csv --head classes " + BERT, 2, ["headed.csv", "no record"]),
    ("S train --data broken.jsonl --head classes " + BERT, 2, ["broken.jsonl, line 7", "is no JSON"]),
    ("S train --data halves.jsonl --head classes " + BERT, 2, ["halves.jsonl, line 2", "number with a fraction"]),
    ("S train --data wide.csv --head classes " + BERT, 2, ["wide.csv, line 4", "has 3 fields"]),
    ("S train --data cafe.jsonl --head classes " + BERT, 2, ["cafe.jsonl, line 3", "no UTF-8", "iconv"]),
    ("S train --data reviews.jsonl --head classes --sequences windows " + BERT, 2, ["no label", "documents"]),
    ("S train --data text --sequences documents " + GPT2, 2, ["no examples", "JSON lines"]),
    ("S train --data reviews.jsonl --sequences pages", 2, ["--sequences pages", "windows,documents"]),
    ("S train --data reviews.jsonl --too-long drop", 2, ["--too-long drop", "cut,skip"]),
    ("S train --data reviews.jsonl --data-type json", 2, ["--data-type json", "jsonl"]),
    ("S train --data reviews.jsonl --length-groups 0", 2, ["--length-groups 0", "from 1"]),
    ("S train --eval-data text", 2, ["--eval-data", "give --data"]),
    ("S train --data text --eval-data nowhere", 2, ["--eval-data", "nowhere", "No such file"]),
    ("S train --data text --eval-data reviews.jsonl", 2, ["--eval-data", "both of one kind"]),
    ("S train --data reviews.jsonl --eval-data strange.jsonl --head classes " + BERT, 2,
     ["strange.jsonl", '"strange"', "none of the 2 classes"]),
    # Records that no step would have come to, told before ranks start
    ("S train -n 2 --data late.jsonl " + GPT2, 2,
     ["late.jsonl, line 38", '"text" is a number; it must be a text', "mend this record or remove it"], {"early": True}),
    ("S train -n 2 --data late.jsonl --sequences documents " + GPT2, 2, ["late.jsonl, line 38"], {"early": True}),
    ("S train -n 2 --data reviews.jsonl --eval-data late.jsonl --head classes " + BERT, 2,
     ["--eval-data", "late.jsonl, line 38"], {"early": True}),
    ("S train -n 2 --data halves.jsonl --head classes " + BERT, 2, ["halves.jsonl, line 2"], {"early": True}),
    ("S train -n 2 --data blank.jsonl --sequences documents " + GPT2, 2, ["blank.jsonl, line 31", "empty text; remove it"],
     {"early": True}),
    ("S train -n 2 --data same.jsonl --head classes " + BERT, 2, ["nothing to tell apart"], {"early": True}),
    ("S train -n 2 --data late_chat.jsonl --chat-template chatml " + GPT2, 2,
     ["late_chat.jsonl, line 13", "the assistant says nothing"], {"early": True}),
    # Conversations
    ("S train --data chat.jsonl " + GPT2, 2, ["conversations", "--chat-template", "chatml"]),
    ("S train --data chat.jsonl --chat-template jinja " + GPT2, 2, ['"jinja"', "chatml, zephyr, llama-2, plain"]),
    ("S train --data chat.jsonl " + BERT, 2, ["chat.jsonl", "are for gpt2"]),
    ("S train --data silent.jsonl --chat-template chatml --eval-data chat.jsonl " + GPT2, 2,
     ["silent.jsonl, line ", "the assistant says nothing"], {"output": True}),
]


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def prepare_data(write):
    """Makes the files; write(name, content)."""
    reviews = [{"text": f"review number {n}", "label": "good" if n % 2 else "bad"} for n in range(40)]
    talk = [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}] * 12
    write("torch/config.json", '{"model_type": "gpt2"}')
    write("torch/pytorch_model.bin", b"PK\x03\x04")
    write("lora/adapter_config.json", "{}")
    write("pointers/config.json", POINTER)
    write("pointers/model.safetensors", POINTER)
    write("old_bpe/vocab.json", "{}")
    write("old_bpe/merges.txt", "")
    write("old_wordpiece/vocab.txt", "[UNK]\n")
    write("pieces/tokenizer.model", b"\x0a\x0e")
    write("list.json", json.dumps(reviews, indent=1))
    write("pretty.json", json.dumps(reviews[0], indent=1))
    write("utf16", "Words in two bytes a letter, and no mark before them.\n".encode("utf-16-le") * 9)
    write("latin1", b"one\ntwo\ncaf\xe9\n")
    write("nuls", b"one\nt\0wo\nthree\n")
    tokens = [50256 * 7 ** -(n % 9) * (n % 5 + 1) / 5 for n in range(4000)]
    write("train.bin", struct.pack("<4000H", *map(int, tokens)))
    write("odd.bin", b"\1\0\2")
    write("table.parquet", b"PAR1\x15" + bytes(20))
    write("text.gz", b"\x1f\x8b\x08" + bytes(20))
    write("photos/cat/a.png", b"\x89PNG\r\n\x1a\n")
    write("reviews.jsonl", lines(reviews))
    write("other.jsonl", lines([{"body": "a", "stars": 1}] * 3))
    write("other.csv", "body,stars\na,1\nb,2\nc,3\n")
    write("headless.csv", "".join(f'good,"a film, number {n}"\n' for n in range(40)))
    write("semicolons.csv", "text;label\n" + "a film;good\n" * 40)
    write("words.jsonl", '"one"\n"two"\n' * 99)
    write("sharegpt.jsonl", lines([{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}] * 9))
    write("alpaca.jsonl", lines([{"instruction": "a", "input": "", "output": "b"}] * 9))
    write("pairs.jsonl", lines([{"prompt": "a", "completion": "b"}] * 9))
    write("few.jsonl", lines(reviews[:5]))
    write("same.jsonl", lines([{"text": "a", "label": "x"}] * 20))
    write("texts.jsonl", lines([{"text": "a"}] * 20))
    write("headed.csv", "text,label\n")
    write("broken.jsonl", lines(reviews[:6]) + '{"text": "a" "label": "good"}\n' + lines(reviews[6:]))
    write("halves.jsonl", lines([{"text": "a", "label": 1}, {"text": "b", "label": 0.5}] * 9))
    write("wide.csv", "text,label\na,1\nb,2\nc, d,1\n" + "e,2\n" * 9)
    write("cafe.jsonl", lines(reviews[:2]).encode() + b'{"text": "caf\xe9", "label": "good"}\n' + lines(reviews[2:]).encode())
    write("late.jsonl", lines(reviews[:37] + [{"text": 5, "label": "good"}] + reviews[37:]))
    write("blank.jsonl", lines(reviews[:30] + [{"text": "", "label": "good"}] + reviews[30:]))
    write("late_chat.jsonl", lines(talk + [{"messages": [{"role": "user", "content": "a"}]}]))
    write("strange.jsonl", lines([{"text": "a", "label": "strange"}] * 3))
    write("chat.jsonl", lines(talk))
    write("silent.jsonl", lines([{"messages": [{"role": "user", "content": "a"}]}] * 12))
