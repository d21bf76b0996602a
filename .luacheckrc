-- luacheck: trusted Lua knows the engine; scripts know exactly what the sandbox gives them (docs/scripting.md).
std = "lua51"
max_line_length = 220
exclude_files = { "build*", "tests/script/mock", "tests/fuzz/corpus" }

files["tests/script"] = { std = "+busted" }
files["runtime/lua"] = { ignore = { "212/_.*" } }

stds.sandbox = {
  read_globals = { "check", "import", "ipairs", "log", "metric", "pairs", "tonumber", "tostring", "type", "average", "total", "spec", "objective",
                   "aggregator", "schedule", "optimiser", "model", "reward", "tensor", "nn", "string", "table", "math", "text", "json" },
}
files["scripts"] = { std = "sandbox", ignore = { "212/_.*" } }
