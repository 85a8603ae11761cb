"""check_explain.py <file> <tokens> checks the JSON of heddle explain for the shape `tiny`."""
import json
import sys

path, tokens = sys.argv[1], int(sys.argv[2])
with open(path, encoding="utf-8") as file:
    result = json.load(file)
assert result["tokens"] == tokens and result["fuse"] == "all", result
fusions = {fusion["name"]: fusion for fusion in result["fusions"]}
attention = fusions["fuse-attention"]
assert attention["fired"] == 2 and attention["declined"] is None, attention
(site,) = attention["sites"]
assert site["operation"] == "layers.0-1.attention.mixed", site
assert site["ids"] == ["layers.0.attention.mixed", "layers.1.attention.mixed"], site
assert "layers.0.attention.scores" in site["from"], site
assert any(place.startswith("frontend/") and place.split(":")[1].isdigit() for place in site["places"]), site
for fusion in fusions.values():
    assert (fusion["saved"] is None) == (fusion["fired"] == 0), fusion
    assert len([id for site in fusion["sites"] for id in site["ids"]]) == fusion["fired"], fusion
    # What the places save is all that there is to save; attention also spares the append the keys and values that it would give.
    for what in ("phases", "bytes_moved", "attention_bytes") if fusion["fired"] else ():
        saved = sum(site["saved"]["prefill"][what] for site in fusion["sites"] if site["saved"])
        total = fusion["saved"]["prefill"][what]
        assert saved == total or (fusion is attention and 0 < saved < total), (fusion["name"], what, saved, total)
    for miss in fusion["missed"]:
        assert miss["reason"] and miss["ids"], miss
saved = attention["saved"]["prefill"]
# Four heads of tokens x tokens scores in each layer; the cache gives keys rounded up to 16. Pieces of 2048
# tokens see the keys before them.
pieces = [min(2048, tokens - begin) for begin in range(0, tokens, 2048)]
keys = [-(-min(begin + 2048, tokens) // 16) * 16 for begin in range(0, tokens, 2048)]
scores = 2 * 4 * 4 * sum(rows * columns for rows, columns in zip(pieces, keys))
assert saved["attention_bytes"] >= scores, (saved, scores)
assert saved["phases"] > 0 and saved["bytes_moved"] >= 2 * scores, saved
# What is left is a worker's share: so many bytes, and so many for each key.
assert result["costs"]["prefill"]["attention_bytes"] < 2 * len(keys) * (65536 + 128 * max(keys)), result["costs"]
assert result["costs"]["decode"]["phases"] > 0, result["costs"]
