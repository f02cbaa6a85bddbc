#!/usr/bin/env python3
"""Makes tests/data/tokenizer/hub_*.json: tokenizer.json files of kinds that hubs hand out, trained on the text below, with the ids and
texts that the tokenizers library gives. Needs: pip install tokenizers==0.23.3."""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).resolve().parent / "tokenizer"
TEXT = """The river bends twice before the mill, and the miller counts its bends each morning.
He has a book of numbers: 12 sacks, 240 loaves, 7 cats, 1999 swallows and 3 letters from his sister.
"Don't count the swallows," she'd written; "they'll be gone by Friday, and you'll have to start again."
La rivière tourne deux fois. Der Fluß biegt zweimal ab. El río da dos vueltas.
for i in range(10):
    print(i, "bends", end="\\n")
"""
TEXTS = [
    "", " ", "  ", "   a", "a   ", "\n", "\r\n", "\n\n\n", "\t\ttabs\t", "The river bends twice", " The river", "the  mill",
    "numbers 12 240 7 1999 123456", "Don't they'll SHE'D", "rivière", "Fluß", "e\u0301te\u0301 \u00e9t\u00e9", "日本語のテキスト", "emoji 👩‍👩‍👧 🎉",
    "a\u2581b\u2581\u2581c", "\u2581", "x\u00a0y\u2003z", "\u0000\u0001", "for i in range(10):\n    print(i)\n", "!!! ... ??? ;-)",
    "<s>The river</s>", "<s> The river </s> again", "end</s>", "a <tool> b", "<tool><tool>", "no<tool>space", "<s><tool></s>",
    "<|user|>   hello<|end|>\n\nworld", "left   <mask>right", "٣٤٥ १२ Ⅷ ½", "ǅ ǆ ſ ß ẞ", "αβγ ΑΒΓ", "𝔘𝔫𝔦", "word" * 40,
]


def added():
    return [AddedToken("<|user|>", special=True, rstrip=True, normalized=False),
            AddedToken("<|end|>", special=True, rstrip=True, normalized=False),
            AddedToken("<mask>", special=True, lstrip=True, normalized=False),
            AddedToken("<tool>", special=False, normalized=False)]


def special():
    return [AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")]


def frame(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])


def train_chars(normalizer, pre_tokenizer, decoder):
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=tokens, limit_alphabet=60)
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    # Byte tokens are no added tokens in the files of hubs.
    spec = json.loads(tokenizer.to_str())
    spec["added_tokens"] = spec["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.add_tokens(added())
    frame(tokenizer)
    return tokenizer


def train_bytes(normalizer, pre_tokenizer, ignore_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=["<unk>", "<s>", "</s>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    tokenizer.add_tokens(added())
    frame(tokenizer)
    return tokenizer


def strip_decoder():
    return decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def plain_decoder():
    return decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


KINDS = {
    "prepend": lambda: train_chars(normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]), None,
                                   strip_decoder()),
    "metaspace_first": lambda: train_chars(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                                           decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                                              decoders.Strip(" ", 1, 0)])),
    "metaspace_split": lambda: train_chars(None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True), strip_decoder()),
    "replace": lambda: train_chars(normalizers.Replace(" ", "\u2581"), pre_tokenizers.Split(" ", "merged_with_previous"), plain_decoder()),
    "digits": lambda: train_bytes(None, pre_tokenizers.Sequence([pre_tokenizers.Digits(True), byte_level(True)]), False),
    "splits": lambda: train_bytes(normalizers.NFC(), pre_tokenizers.Sequence([
        split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
        split(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        byte_level()]), True),
}


def main():
    for name, make in KINDS.items():
        tokenizer = make()
        cases = []
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)})
        record = {"tokenizer": json.loads(tokenizer.to_str()), "cases": cases}
        (OUT / f"hub_{name}.json").write_text(json.dumps(record, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    main()
