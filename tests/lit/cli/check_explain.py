"""check_explain.py <file> <tokens> [<shape>] checks the JSON of heddle explain for a built-in shape: `tiny`, `llama-110m`."""
import json
import sys

path, tokens = sys.argv[1], int(sys.argv[2])
shape = sys.argv[3] if len(sys.argv) > 3 else "tiny"
layers, heads = {"tiny": (2, 4), "llama-110m": (12, 12)}[shape]
with open(path, encoding="utf-8") as file:
    result = json.load(file)
assert result["tokens"] == tokens and result["fuse"] == "all", result
fusions = {fusion["name"]: fusion for fusion in result["fusions"]}
attention = fusions["fuse-attention"]
assert attention["fired"] == layers and attention["declined"] is None, attention
(site,) = attention["sites"]
assert site["operation"] == f"layers.0-{layers - 1}.attention.mixed", site
assert site["ids"] == [f"layers.{layer}.attention.mixed" for layer in range(layers)], site
assert "layers.0.attention.scores" in site["from"], site
assert any(place.startswith("frontend/") and place.split(":")[1].isdigit() for place in site["places"]), site
for fusion in fusions.values():
    assert (fusion["saved"] is None) == (fusion["fired"] == 0), fusion
    assert len([id for site in fusion["sites"] for id in site["ids"]]) == fusion["fired"], fusion
    # What the places save and what is saved elsewhere is all that there is to save; the arena is the program's, not a place's.
    assert (fusion["saved_elsewhere"] is None) == (fusion["saved"] is None), fusion
    for phase in ("prefill", "decode") if fusion["fired"] else ():
        elsewhere, total = fusion["saved_elsewhere"][phase], fusion["saved"][phase]
        parts = [site["saved"][phase] for site in fusion["sites"] if site["saved"]] + [elsewhere]
        assert set(total) == {"phases", "bytes_moved", "arena_bytes", "attention_bytes"}, total
        for part in parts:
            assert part["arena_bytes"] is None and set(part) == set(total), part
        assert isinstance(total["arena_bytes"], int), total
        for what in ("phases", "bytes_moved", "attention_bytes"):
            assert sum(part[what] for part in parts) == total[what], (fusion["name"], phase, what)
            # Attention spares the append the keys and values that it would give. In decode neighbours share phases.
            if fusion is attention:
                assert 0 <= elsewhere[what] < max(1, total[what]), (phase, elsewhere)
            elif phase == "prefill" or what != "phases":
                assert elsewhere[what] == 0, (fusion["name"], phase, elsewhere)
    for miss in fusion["missed"]:
        assert miss["reason"] and miss["ids"], miss
# Quantised weights of rows wide enough: each norm writes blocks, and spares the phase that made them.
quantise = fusions["fuse-quantise"]
if shape == "llama-110m":
    assert quantise["fired"] == 2 * layers + 1 and not quantise["missed"], quantise
    assert {site["operation"] for site in quantise["sites"]} == {
        f"layers.0-{layers - 1}.attention_norm", f"layers.0-{layers - 1}.mlp_norm", "final_norm"}, quantise
    assert quantise["saved"]["prefill"]["phases"] == quantise["fired"], quantise
else:
    assert quantise["fired"] == 0, quantise
saved = attention["saved"]["prefill"]
# Each head has tokens x tokens scores in each layer; the cache gives keys rounded up to 16. Pieces of 2048
# tokens see the keys before them.
pieces = [min(2048, tokens - begin) for begin in range(0, tokens, 2048)]
keys = [-(-min(begin + 2048, tokens) // 16) * 16 for begin in range(0, tokens, 2048)]
scores = layers * heads * 4 * sum(rows * columns for rows, columns in zip(pieces, keys))
assert saved["attention_bytes"] >= scores, (saved, scores)
assert saved["phases"] > 0 and saved["bytes_moved"] >= 2 * scores, saved
# What is left is a worker's share: so many bytes, and so many for each key.
assert result["costs"]["prefill"]["attention_bytes"] < layers * len(keys) * (65536 + 128 * max(keys)), result["costs"]
assert result["costs"]["decode"]["phases"] > 0, result["costs"]
