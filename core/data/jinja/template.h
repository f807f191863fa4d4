// SPDX-License-Identifier: Apache-2.0
// A Jinja template as chat templates use it: the subset of Jinja2 in the manual, with trim_blocks, lstrip_blocks,
// loop controls, {% generation %}, raise_exception(), strftime_now() and tojson as transformers sets them. Immutable,
// thread-safe.
#pragma once
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {

struct Rendered {
  std::string text;
  std::vector<GeneratedRange> generated;  // {% generation %} blocks, in order
};

class Template {
 public:
  // `source` names the template in errors. Throws Error TEMPLATE with line and column.
  Template(std::string_view text, std::string source);

  // `variables`: an object. Throws Error TEMPLATE for what is not supported and for errors of Jinja, TOK-2 for
  // raise_exception().
  Rendered render(const Json& variables, std::time_t now, const Limits& limits = {}) const;

 private:
  std::string source_;
  std::shared_ptr<const Body> body_;
};

}  // namespace mw::data::jinja
