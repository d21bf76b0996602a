-- golden: writes tests/script/golden/graphs.txt, the hashes of every case of cases.lua. A change of a hash is a change of what runs
-- compute: look at it, then run   luajit tests/script/golden.lua   from the root and commit the file with the reason.
package.path = "tests/script/?.lua;" .. package.path
local D, cases = require("driver"), require("cases")
local out = assert(io.open("tests/script/golden/graphs.txt", "w"))
for _, c in ipairs(cases) do
  local answer = D.call(c[2], c[3], c[4], c[5])
  assert(answer.ok, c[1] .. ": " .. (answer.error and answer.error.message or "?"))
  local hashes = {}
  for i, g in ipairs(answer.graphs) do hashes[i] = g.hash end
  out:write(c[1], "\t", table.concat(hashes, " "), "\n")
end
out:close()
