"""Checks the JSON of heddle machine."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    result = json.load(file)
assert result["threads"] == 1, result
for name in ("f32_gflops", "read_gbytes_per_second"):
    for who in ("core", "all"):
        rate = result[name][who]
        assert 0 < rate["median"] <= rate["best"], rate
        assert rate["spread"] >= 0, rate
    assert result["machine"][name] == result[name]["all"]["best"], result
assert (result["machine"]["bf16_gflops"] is None) == (result["bf16_gflops"] is None), result
