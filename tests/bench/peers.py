#!/usr/bin/env python3
"""Runs Heddle and an engine that runs on Node in turn on one model, and compares their speed.

    peers.py model.gguf --modules FOLDER                     llama.cpp, package node-llama-cpp
    peers.py model.onnx llama-1b --modules FOLDER            onnxruntime, package onnxruntime-node

FOLDER has the node_modules. A .gguf is what both run. Of a .onnx Heddle runs the built-in shape
that is named after it, with random weights of --dtype. Each round starts both engines anew, one
after the other; what is compared are the medians of all their measurements.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def numbers(text):
    return [int(number) for number in text.split(",")]


def output(command, what):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"peers.py: {what} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def run_peer(program, options):
    """Tokens a second: {row: [rates]}."""
    asked = {"modules": str(options.modules.resolve()), "model": str(options.model.resolve()),
             "threads": options.threads, "prompt_tokens": options.prompt_tokens,
             "gen_tokens": options.gen_tokens, "reps": options.reps}
    text = output(["node", str(HERE / "peers" / program), json.dumps(asked)], program)
    result = json.loads(text.strip().splitlines()[-1])
    rates = {f"prefill {tokens}": [tokens / time for time in result["prefill"][str(tokens)]]
             for tokens in options.prompt_tokens}
    return rates | {"decode": [options.gen_tokens / time for time in result["decode"]]}


def run_heddle(options):
    """As run_peer; the program gives a median of its repetitions."""
    command = [str(options.heddle), "bench", options.shape or str(options.model)]
    command += ["--dtype", options.dtype] if options.dtype else []
    command += ["--prompt-tokens", ",".join(map(str, options.prompt_tokens)),
                "--gen-tokens", str(options.gen_tokens), "--reps", str(options.reps),
                "--threads", str(options.threads), "--quiet", "--json", "-"]
    result = json.loads(output(command, "heddle"))
    rates = {f"prefill {row['tokens']}": [row["tokens_per_second"]] for row in result["prefill"]}
    return rates | {"decode": [result["decode"]["tokens_per_second"]]}


def summary(rates):
    middle = statistics.median(rates)
    return {"median": middle, "spread": (max(rates) - min(rates)) / middle, "rates": rates}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="a .gguf or .onnx")
    parser.add_argument("shape", nargs="?", help="of a .onnx: Heddle's name of its shape")
    parser.add_argument("--modules", type=pathlib.Path, required=True)
    parser.add_argument("--heddle", type=pathlib.Path, default=ROOT / "heddle")
    parser.add_argument("--dtype", help="of Heddle's weights, if not the file's")
    parser.add_argument("--prompt-tokens", type=numbers, default=[128, 512, 2048])
    parser.add_argument("--gen-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reps", type=int, default=3, help="in each round")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    options = parser.parse_args()
    programs = {".gguf": ("llama.cpp", "llama_cpp.mjs"),
                ".onnx": ("onnxruntime", "onnxruntime.mjs")}
    if options.model.suffix not in programs or not options.model.is_file():
        parser.error(f"{options.model} is no .gguf or .onnx file")
    if (options.model.suffix == ".onnx") != bool(options.shape):
        parser.error("a shape is named beside a .onnx, and only there")
    if min(options.prompt_tokens + [options.gen_tokens, options.rounds, options.reps]) < 1:
        parser.error("tokens, rounds and repetitions are 1 or more")
    name, program = programs[options.model.suffix]

    peer, heddle = {}, {}
    for _ in range(options.rounds):
        for rates, measured in ((peer, run_peer(program, options)), (heddle, run_heddle(options))):
            for row, values in measured.items():
                rates.setdefault(row, []).extend(values)

    rows = {row: {name: summary(peer[row]), "heddle": summary(heddle[row]),
                  "ratio": statistics.median(heddle[row]) / statistics.median(peer[row])}
            for row in peer}
    print(f"{options.model.name}, {options.threads} threads, tokens a second (spread)")
    for row, one in rows.items():
        print(f"  {row:13}" + "".join(
            f"  {engine} {one[engine]['median']:9.1f} ({one[engine]['spread']:4.0%})"
            for engine in (name, "heddle")) + f"  {one['ratio']:.2f}x")
    if options.json:
        options.json.write_text(json.dumps({"model": options.model.name, "threads": options.threads,
                                            "rounds": options.rounds, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
