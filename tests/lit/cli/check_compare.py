"""check_compare.py <file> <tokens> <error tokens> <bound> [by-fusion] checks the JSON of heddle compare."""
import json
import sys

path, tokens, error_tokens, bound = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
by_fusion = sys.argv[5:] == ["by-fusion"]
with open(path, encoding="utf-8") as file:
    result = json.load(file)
assert result["tokens"] == tokens and result["error_tokens"] == error_tokens, result
for phase in ("prefill", "decode"):
    fused, unfused = result[phase]["fused"], result[phase]["unfused"]
    for side in (fused, unfused):
        assert side["ms"] > 0 and side["bytes_moved"] > 0 and side["arena_bytes"] > 0, side
        assert 0 < side["rms_error"] <= bound and side["max_error"] > 0, side
    assert abs(result[phase]["speedup"] - unfused["ms"] / fused["ms"]) < 1e-3, result[phase]
    assert fused["rms_error"] <= 2 * unfused["rms_error"] + 1e-7, result[phase]
    assert fused["phases"] < unfused["phases"], result[phase]
    assert fused["bytes_moved"] < unfused["bytes_moved"], result[phase]
    # All scores, against those of a few rows at a time.
    assert phase == "decode" or fused["attention_bytes"] < unfused["attention_bytes"], result[phase]
    assert unfused["attention_bytes"] > 0, result[phase]
fusions = {fusion["name"]: fusion for fusion in result["fusions"]}
assert fusions["fuse-attention"]["fired"] == 2, fusions
assert fusions["fuse-gated-linear"]["fired"] == 2, fusions
for fusion in fusions.values():
    assert fusion["ms_without"] > 0 and fusion["speedup"] > 0, fusion
    assert ("prefill_without" in fusion) == (by_fusion and fusion["fired"] > 0), fusion
    for phase in ("prefill", "decode"):
        if without := fusion.get(phase + "_without"):
            all_on, none = result[phase]["fused"], result[phase]["unfused"]
            assert without["ms"] > 0 and without["spread"] >= 0 and without["arena_bytes"] > 0, without
            assert without["rms_error"] <= bound and without["max_error"] > 0, without
            # None of them takes a phase or a byte more than nothing fused, nor saves one by its absence.
            for cost in ("phases", "bytes_moved"):
                assert all_on[cost] <= without[cost] <= none[cost], (fusion, all_on, none)
if by_fusion:
    assert fusions["fuse-attention"]["prefill_without"]["attention_bytes"] > 0, fusions
if tokens > 2048:  # two pieces of work: both of their phases count
    assert result["prefill"]["fused"]["phases"] > 1.5 * result["decode"]["fused"]["phases"], result
ops = {op["id"]: op for op in result["ops"]}
mixed = ops["layers.0.attention.mixed"]
assert mixed["name"] == "heddle.attention" and mixed["fused_ms"] > 0 and mixed["unfused_ms"] > 0, mixed
assert len(ops) == len(result["ops"]), "an id comes twice"
