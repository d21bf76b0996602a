-- close_match: how far the completion agrees with the reference: bytes of their common beginning over the length of the longer; 1 when equal.
return reward {
  score = function(r)
    if type(r.reference) ~= "string" then return nil end              -- nothing to compare with: no reward
    local got, wanted = text.trim(r.text), r.reference
    local same, longest = 0, math.max(#got, #wanted)
    while same < math.min(#got, #wanted) and string.byte(got, same + 1) == string.byte(wanted, same + 1) do same = same + 1 end
    return longest == 0 and 1 or same / longest
  end,
}
