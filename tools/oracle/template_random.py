#!/usr/bin/env python3
"""Renders random conversations by transformers and by `rondo render`, and compares every byte.

    sh tools/oracle/run.sh template                      2,000 conversations by each of 20 templates of the fixtures
    python3 tools/oracle/template_random.py [COUNT] [SEED]
    python3 tools/oracle/template_random.py --golden     writes tests/golden/text/template_random.json: 2 a template

A conversation that transformers refuses (the template raises, or Python does) must be refused with status 3.
"""
import concurrent.futures, datetime, hashlib, json, os, random, subprocess, sys, tempfile

from transformers.utils import chat_template_utils

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FIXTURES = os.environ.get("RONDO_FIXTURES", os.path.join(ROOT, "..", "shared", "fixtures"))
GOLDEN = os.path.join(ROOT, "tests", "golden", "text", "template_random.json")
TEMPLATES = """Apertus-8B-Instruct ByteDance-Seed-OSS GLM-4.6 Kimi-K2-Instruct LFM2.5-Instruct NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use Qwen-Qwen2.5-7B-Instruct Qwen-Qwen3-0.6B axolotl-exaone4 deepseek-ai-DeepSeek-V3.1
google-gemma-4-31B-it hanzoai-smollm3 meta-llama-Llama-3.2-3B-Instruct microsoft-Phi-3.5-mini-instruct mistral-common-v7
mistralai-Ministral-3-14B-Reasoning-2512 openai-gpt-oss-120b trl-gemma3 trl-qwen3_training""".split()

WORDS = ["hello", "price", "<b>", "&amp;", "Ünïcode", "漢字", "😀", "it's", '"quoted"', "{{ x }}", "{% if %}", "\\n", "a\tb", "<|im_end|>", "</s>",
         "<think>", "</think>", "<tool_call>", "1.0", "null", "\u00a0", "\u2028", "e\u0301", "ß", "\r\n", "[INST]", "%s", "  "]


def text(r, least=0):
    joined = "".join(r.choice(WORDS) + r.choice(["", " ", " ", "\n", "\n\n"]) for _ in range(r.randint(least, 7)))
    return r.choice(["", "", " ", "\n"]) + joined


def value(r, depth=0):
    kind = r.randrange(8 if depth < 3 else 6)
    if kind == 0:
        return r.randint(-1000, 10**12)
    if kind == 1:
        return r.choice([0.5, 1.0, -2.25, 1e20, 1e-7, 123456.789, 0.1])
    if kind == 2:
        return r.choice([True, False, None])
    if kind < 6:
        return text(r)
    if kind == 6:
        return [value(r, depth + 1) for _ in range(r.randint(0, 3))]
    return {r.choice(["a", "b", "city", "é", "x y", "items"]): value(r, depth + 1) for _ in range(r.randint(0, 3))}


def function(r, name):
    names = r.sample(["city", "day", "n", "étage", "items"], r.randint(0, 3))
    schema = {"type": "object", "properties": {n: {"type": r.choice(["string", "number", "boolean"]), "description": text(r)} for n in names}}
    if r.random() < 0.7:
        schema["required"] = names[:1]
    return {"type": "function", "function": {"name": name, "description": text(r, 1), "parameters": schema}}


def call(r, name, number):
    arguments = {k: value(r) for k in r.sample(["city", "day", "n", "étage"], r.randint(0, 3))}
    if r.random() < 0.15:
        arguments = json.dumps(arguments, ensure_ascii=r.random() < 0.5)
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    if r.random() < 0.8:
        made["id"] = "call%05d" % number
    return made


def content(r, words):
    return [{"type": "text", "text": words}] if r.random() < 0.05 else words


def conversation(r):
    names = r.sample(["get_weather", "rent_gpu", "search", "f"], r.randint(1, 3))
    messages = [{"role": "system", "content": content(r, text(r))}] if r.random() < 0.5 else []
    for _ in range(r.randint(1, 4)):
        messages.append({"role": "user", "content": content(r, text(r))})
        if r.random() < 0.05:
            messages.append({"role": r.choice(["user", "system", "developer"]), "content": text(r)})
        if r.random() < 0.35:
            calls = [call(r, r.choice(names), r.randrange(100000)) for _ in range(r.choice([1, 1, 2, 3]))]
            message = {"role": "assistant", "content": r.choice([None, "", text(r)]), "tool_calls": calls}
            if r.random() < 0.3:
                message["reasoning_content"] = text(r)
            messages.append(message)
            for made in calls:
                result = {"role": "tool", "content": r.choice([text(r), json.dumps(value(r))]), "name": made["function"]["name"]}
                if "id" in made:
                    result["tool_call_id"] = made["id"]
                messages.append(result)
        if r.random() < 0.8:
            message = {"role": "assistant", "content": content(r, text(r))}
            if r.random() < 0.3:
                message["reasoning_content"] = text(r)
            messages.append(message)
    made = {"messages": messages, "tools": [function(r, n) for n in names] if r.random() < 0.5 else None, "documents": None,
            "add_generation_prompt": r.random() < 0.5}
    if r.random() < 0.9:
        made["bos_token"], made["eos_token"] = "<s>", "</s>"
    if r.random() < 0.3:
        made["enable_thinking"] = r.random() < 0.5
    made["messages"] = chat_template_utils._alias_reasoning_fields(made["messages"])  # a template's variables are what comes after it
    return made


def reference(source, context):
    """What transformers renders, or None."""
    arguments = json.loads(json.dumps(context))
    compiled = chat_template_utils._compile_jinja_template(source)
    compiled.environment.globals["strftime_now"] = lambda f: datetime.datetime(2026, 1, 1).strftime(f)
    try:
        rendered = chat_template_utils.render_jinja_template(conversations=[arguments.pop("messages")], tools=arguments.pop("tools"),
                                                             documents=arguments.pop("documents"), chat_template=source, **arguments)[0][0]
    except Exception:
        return None
    return None if " at 0x" in rendered else rendered


def compare(job):
    template, source, seed, folder = job
    context = conversation(random.Random(seed))
    path = os.path.join(folder, "%d.json" % os.getpid())
    with open(path, "w") as out:
        json.dump(context, out, ensure_ascii=False)
    want = reference(source, context)
    got = subprocess.run([os.path.join(os.environ.get("RONDO_BUILD", os.path.join(ROOT, "build")), "rondo"), "render", "--template", template, "--context", path], capture_output=True)
    same = got.returncode == 3 and not got.stdout if want is None else got.returncode == 0 and got.stdout == want.encode()
    return same, want is None, "%s seed %s\n  want %r\n  got  %r %s" % (template, seed, want, got.stdout.decode(errors="replace"), got.stderr.decode())


def sources():
    return [(path, open(path, newline="").read()) for path in (os.path.join(FIXTURES, "templates", name + ".jinja") for name in TEMPLATES)]


def golden():
    cases = []
    for path, source in sources():
        for seed in range(2):
            context = conversation(random.Random(str(seed) + os.path.basename(path)))
            want = reference(source, context)
            cases.append([os.path.basename(path), context, want and hashlib.blake2b(want.encode(), digest_size=16).hexdigest()])
    with open(GOLDEN, "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")


def main():
    if "--golden" in sys.argv:
        return golden()
    count, seed = int((sys.argv + ["2000"])[1]) if len(sys.argv) > 1 else 2000, sys.argv[2] if len(sys.argv) > 2 else "1"
    compared = refused = differing = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, concurrent.futures.ProcessPoolExecutor(2) as pool:
        jobs = [(path, source, "%s-%d" % (seed, i), folder) for path, source in sources() for i in range(count)]
        for same, raises, report in pool.map(compare, jobs, chunksize=50):
            compared += 1
            refused += raises
            differing += not same
            if not same and differing <= 20:
                print(report)
    print("%d templates, %d conversations each: %d compared, %d refused by both, %d differ" % (len(TEMPLATES), count, compared, refused, differing))
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
