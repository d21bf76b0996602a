-- regex_like: 1 when the completion fits a pattern: the row's reference where that is text, else the option. Linear time, whatever the pattern.
local pattern = spec.text("pattern", "", { help = "used where the row has no reference" })
local whole = spec.flag("whole", true, { help = "the whole completion must fit, not a part of it" })

return reward {
  score = function(r)
    local wanted = type(r.reference) == "string" and r.reference or pattern
    if wanted == "" then return nil end                               -- nothing to compare with: no reward
    if whole then wanted = "^(?:" .. wanted .. ")$" end
    return text.match(text.trim(r.text), wanted) and 1 or 0
  end,
}
