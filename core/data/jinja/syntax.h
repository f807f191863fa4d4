// SPDX-License-Identifier: Apache-2.0
// Parses a Jinja template to its syntax tree. Its depth is limited (kMostNestedSyntax), so that recursion over it is
// bounded.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/jinja/value.h"

namespace mw::data::jinja {

inline constexpr int kMostNestedSyntax = 200;

struct Position {
  std::uint32_t line = 1, column = 1;
};

// Throws Error TEMPLATE at a position of a template.
[[noreturn]] void fail_template(const std::string& source, Position at, const std::string& message,
                                const std::string& found, const std::string& expected = {});

struct TemplateExpression;
using TemplateExpressionPtr = std::unique_ptr<const TemplateExpression>;

struct CallArguments {
  std::vector<TemplateExpressionPtr> positional;
  std::vector<std::pair<std::string, TemplateExpressionPtr>> named;
};

// The children by kind: attribute, item, filter, test, call: the subject, then (item) the index; slice: subject, start,
// stop, step (null: not given); conditional: test, value, other value (may be null); dict: key, value, key, value, ...;
// compare: operands, with operators in `operators`.
struct TemplateExpression {
  enum class Kind {
    constant,
    name,
    list,
    tuple,
    dict,
    attribute,
    item,
    slice,
    call,
    filter,
    test,
    negate,
    plus,
    logical_not,
    logical_and,
    logical_or,
    binary,
    concatenate,
    compare,
    conditional
  };
  Kind kind = Kind::constant;
  Position at{};
  int depth = 1;
  std::string name{};  // of a variable, attribute, filter or test; the operator of a binary expression
  Value constant{};
  std::vector<TemplateExpressionPtr> children{};
  std::vector<std::string> operators{};
  CallArguments arguments{};
};

struct TemplateStatement;
using Body = std::vector<std::unique_ptr<const TemplateStatement>>;

struct MacroParameter {
  std::string name;
  TemplateExpressionPtr fallback;  // null: none
};
struct Macro {
  std::string name;
  std::vector<MacroParameter> parameters;
  Body body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};
// A variable, several (unpacked), or an attribute of a namespace.
struct AssignmentTarget {
  std::vector<std::string> names;
  bool is_tuple = false;
  std::string attribute{};
};

struct TemplateStatement {
  enum class Kind {
    text,
    output,
    if_,
    for_,
    set,
    set_block,
    macro,
    call_block,
    filter_block,
    with,
    generation,
    break_,
    continue_
  };
  Kind kind = Kind::text;
  Position at{};
  std::string text{};
  std::vector<TemplateExpressionPtr>
      expressions{};                        // if: one per branch; for: iterable, condition or null; with: values
  std::vector<Body> bodies{};               // if: one per branch, then else; for: body, else
  AssignmentTarget target{};                // of for and set
  std::vector<AssignmentTarget> targets{};  // of with
  bool is_recursive = false;
  Macro macro{};  // of macro and call_block
};

// Throws Error TEMPLATE for what is no Jinja, and for tags that chat templates do not use.
Body parse_template(std::string_view text, const std::string& source);

}  // namespace mw::data::jinja
