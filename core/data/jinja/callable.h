// SPDX-License-Identifier: Apache-2.0
// Functions and loops as values of a template.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/data/jinja/syntax.h"

namespace mw::data::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

struct Callable {
  enum class Kind { function, method, macro };
  Kind kind = Kind::function;
  std::string name;
  Value self{};                                          // of a method
  const Macro* macro = nullptr;                          // of a macro or caller()
  std::shared_ptr<const Variables> enclosing = nullptr;  // what a macro sees beside its own and the global variables
  int depth = 1;
};

inline Value make_function(Callable::Kind kind, const std::string& name, const Value& self = {}) {
  return Value(std::make_shared<const Callable>(
      Callable{.kind = kind, .name = name, .self = self, .depth = depth_of(self) + 1}));
}

// `loop` inside a for. Items and index change only while its loop runs.
struct Loop {
  std::shared_ptr<const Values> items;
  size_t index = 0;
  int level = 0;                         // of recursive loops, 0-based
  const Statement* recursive = nullptr;  // the for statement that loop(...) repeats
  int depth = 1;
};

}  // namespace mw::data::jinja
