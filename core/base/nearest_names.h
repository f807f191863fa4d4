// SPDX-License-Identifier: Apache-2.0
// What a mistyped name was meant to be. Any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw {

// The `count` names nearest to `wrong`: those that it begins, then by edit distance; equally near ones in the order
// given.
std::vector<std::string> nearest_names(std::string_view wrong, const std::vector<std::string>& names, size_t count = 3);
// Whether `text` looks like a mistyped `name`: other letter case, or one letter wrong, too many, missing or exchanged
// with its neighbour. Of names of two letters only the same letters count: "ep" is no mistyped "tp", "pt" is.
bool is_likely_typo(std::string_view text, std::string_view name);
// "v5p-8, v5e-8 or v6e-8"
std::string nearest_names_text(std::string_view wrong, const std::vector<std::string>& names, size_t count = 3);

}  // namespace mw
