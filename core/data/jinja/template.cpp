// SPDX-License-Identifier: Apache-2.0
#include "core/data/jinja/template.h"

#include "core/data/jinja/syntax.h"

namespace mw::data::jinja {

Template::Template(std::string_view text, std::string source)
    : source_(std::move(source)), body_(std::make_shared<const Body>(parse_template(text, source_))) {}

Rendered Template::render(const Json& variables, std::time_t now, const Limits& limits) const {
  Interpreter interpreter(source_, limits, now);
  for (const auto& variable : variables.items()) interpreter.define(variable.key(), from_json(variable.value()));
  Rendered out;
  out.text = interpreter.run(*body_);
  out.generated = interpreter.generated();
  return out;
}

}  // namespace mw::data::jinja
