#!/usr/bin/env python3
"""tests/golden/text/tool_call_cases.json: variations of the Berkeley leaderboard's own answers, judged by its own checker.

    python3 tools/oracle/tool_calls.py FOLDER [SEED] [COUNT] > tests/golden/text/tool_call_cases.json

FOLDER holds the unpacked wheel of bfcl-eval (Apache-2.0). Of its checker only the rules for Python run; what they import for
other languages and for names of models is left out. Half of the cases are right. Ours agreed on 100,000 (seed 2).
"""
import copy
import json
import random
import re
import sys

folder = sys.argv[1] + "/bfcl_eval"
rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
count = int(sys.argv[3]) if len(sys.argv) > 3 else 80


class Language:
    PYTHON, JAVA, JAVASCRIPT = "python", "java", "javascript"


class Names(dict):
    def __missing__(self, key):
        return type("Model", (), {"underscore_to_dot": True})


source = open(folder + "/eval_checker/ast_eval/ast_checker.py").read()
checker = {"Language": Language, "MODEL_CONFIG_MAPPING": Names(), "JAVA_TYPE_CONVERSION": {}, "JS_TYPE_CONVERSION": {}}
exec(re.sub(r"(?s)^import re\n.*?#### Constants", "import re\n#### Constants", source, count=1), checker)

TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def schema(value):
    out = {}
    for key, member in value.items():
        if key == "type" and member != "any":
            out[key] = TYPES.get(member, member)
        elif key == "properties":
            out[key] = {name: schema(inner) for name, inner in member.items()}
        elif key == "items":
            out[key] = schema(member)
        elif key == "required":
            out[key] = member
    return out


def vary(v):
    if isinstance(v, str):
        return rng.choice([v, v.upper(), v + " ", v.replace(" ", "_"), v.replace(",", ""), v + "x", "'" + v + "'", "", 5, [v], None])
    if isinstance(v, bool):
        return rng.choice([v, not v, int(v), str(v)])
    if isinstance(v, (int, float)):
        return rng.choice([v, float(v), v + 1, str(v), int(v), [v], bool(v)])
    if isinstance(v, list):
        inner = [vary(x) if rng.random() < 0.3 else x for x in v]
        return rng.choice([v, v, inner, v[::-1], v[:-1], v + v[:1], [], "x"])
    if isinstance(v, dict):
        inner = {k: (vary(x) if rng.random() < 0.3 else x) for k, x in v.items()}
        return rng.choice([v, v, inner, {}, {**v, "zz": 1}, dict(list(v.items())[1:])])
    return v


def unfold(v):
    """One of the accepted values for each key of the objects inside an answer."""
    if isinstance(v, list):
        return [unfold(x) for x in v]
    if not isinstance(v, dict):
        return v
    kept = {k: x for k, x in v.items() if not (isinstance(x, list) and "" in x and rng.random() < 0.5)}
    return {k: unfold(rng.choice(x)) if isinstance(x, list) and x else x for k, x in kept.items()}


def calls_of(truth):
    out = []
    for wanted in truth:
        (name, accepted), = wanted.items()
        arguments = {}
        for parameter, values in accepted.items():
            if ("" in values and rng.random() < 0.4) or rng.random() < 0.03:
                continue
            value = unfold(rng.choice(values)) if values else []
            arguments[parameter] = vary(value) if rng.random() < 0.25 else value
        if rng.random() < 0.03:
            arguments["unknown"] = 1
        out.append({name.replace(".", "_") + ("x" if rng.random() < 0.02 else ""): arguments})
    if rng.random() < 0.3:
        rng.shuffle(out)
    return out + (out[:1] if rng.random() < 0.03 else [])


def lines(path):
    return {row["id"]: row for row in map(json.loads, open(path))}


pool = []
for kind in ["simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple", "live_parallel"]:
    asked, answers = (lines(f"{folder}/{part}/BFCL_v4_{kind}.json") for part in ("data", "data/possible_answer"))
    pool += [(kind, asked[i], answers[i]["ground_truth"]) for i in asked]

cases, left = [], {True: count - count // 2, False: count // 2}
while any(left.values()):
    kind, case, truth = rng.choice(pool)
    made = calls_of(truth)
    right = checker["ast_checker"](case["function"], copy.deepcopy(made), truth, "python", kind, "any")["valid"]
    row = {
        "tools": [{"function": {"name": f["name"].replace(".", "_"), "parameters": schema(f["parameters"])}} for f in case["function"]],
        "calls": [{"name": name, "arguments": arguments} for call in made for name, arguments in call.items()],
        "accepted": [{name.replace(".", "_"): values for name, values in wanted.items()} for wanted in truth],
        "right": right,
    }
    if left[right] and len(json.dumps(row)) < 2000:
        left[right] -= 1
        cases.append(row)
print("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in cases) + "\n]")
