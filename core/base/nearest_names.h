// SPDX-License-Identifier: Apache-2.0
// Suggestions for mistyped names. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw {

// The `count` names nearest to `wrong`: first names that start with it, then by edit distance; ties in the given order.
std::vector<std::string> nearest_names(std::string_view wrong, const std::vector<std::string>& names, size_t count = 3);
// Whether `text` is `name` in another letter case or with one letter replaced, added, missing or swapped with its
// neighbour. Names of two letters must have the same letters: "pt" is a typo of "tp", "ep" is not.
bool is_likely_typo(std::string_view text, std::string_view name);
// nearest_names joined for a message: "v5p-8, v5e-8 or v6e-8"
std::string nearest_names_text(std::string_view wrong, const std::vector<std::string>& names, size_t count = 3);

}  // namespace mw
