// SPDX-License-Identifier: Apache-2.0
// Evaluates the syntax tree of a template. Use on one thread, for one rendering.
#pragma once
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/jinja/syntax.h"

namespace mw::data::jinja {

// Functions and loops as values of a template.
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
  int level = 0;                                 // of recursive loops, 0-based
  const TemplateStatement* recursive = nullptr;  // the for statement that loop(...) repeats
  int depth = 1;
};

// The limits of one rendering: no template can hang the program or exhaust its memory.
struct Limits {
  std::int64_t steps = 20'000'000;   // nodes evaluated
  std::int64_t bytes = 256'000'000;  // of all strings and lists that are made, in sum
  int depth = 400;                   // of nested calls and expressions
};

struct GeneratedRange {  // the output of a {% generation %} block, in bytes
  size_t begin = 0, end = 0;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Interpreter {
 public:
  // The tree and `source` must outlive the interpreter. `now`: the time of strftime_now().
  Interpreter(const std::string& source, const Limits& limits, std::time_t now);

  void define(std::string name, Value value);
  // Throws Error TEMPLATE, or TOK-2 with the message of raise_exception().
  std::string run(const Body& body);
  const std::vector<GeneratedRange>& generated() const { return generated_; }

  // For the functions below: fail at the current position; count what is made.
  [[noreturn]] void fail(const std::string& message, const std::string& found = {},
                         const std::string& expected = {}) const;
  void charge(std::int64_t bytes);
  Value text(std::string value);
  Value list(Values items, ListKind kind = ListKind::list);
  Value dict(std::vector<std::pair<Value, Value>> items);

  // Items of an iteration; consumes a generator. Fails for what cannot be iterated.
  Values items_of(const Value& value);
  std::int64_t length_of(const Value& value);
  Value attribute(const Value& subject, const std::string& name);
  Value item(const Value& subject, const Value& key);
  Value item_named(const Value& subject, std::string_view key);
  bool contains(const Value& container, const Value& value);
  bool is_less(const Value& a, const Value& b);
  bool same(const Value& a, const Value& b);  // equal(), counted
  std::string str(const Value& value);        // to_str(), counted
  Value call(const Value& function, const Arguments& arguments);
  Value filter(const std::string& name, const Value& subject, const Arguments& arguments);
  bool test(const std::string& name, const Value& subject, const Arguments& arguments);

  // The arguments by parameter, null where not given. Fails for unknown names, and for too many.
  std::vector<const Value*> bound(const std::string& function, const Arguments& arguments,
                                  const std::vector<std::string>& parameters) const;
  std::int64_t integer(const Value& value, const std::string& what) const;
  const std::string& string(const Value& value, const std::string& what) const;
  std::time_t now() const { return now_; }

 private:
  enum class LoopControl { next, break_, continue_ };
  // Counts a step and, while it lives, a level of nesting.
  class Depth {
   public:
    explicit Depth(Interpreter& in) : in_(in) { in.enter(); }
    ~Depth() { --in_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Interpreter& in_;
  };
  void enter();

  LoopControl run_body(const Body& body);
  LoopControl run_statement(const TemplateStatement& s);
  LoopControl run_if(const TemplateStatement& s);
  void run_for(const TemplateStatement& s);
  void run_loop(const TemplateStatement& s, const Value& iterable, int level);
  void run_set(const TemplateStatement& s);
  void run_call_block(const TemplateStatement& s);
  void write(const std::string& text);
  std::string captured(const Body& body);

  Value eval(const TemplateExpression& e);
  Value eval_node(const TemplateExpression& e);
  // The value of a constant, or the result of eval(), which is kept in `result`. Threads that render one template do
  // not count references to its constants, which cost a third of the time on two threads.
  const Value& operand(const TemplateExpression& e, Value& result);
  Value eval_binary(const TemplateExpression& e);
  Value eval_compare(const TemplateExpression& e);
  bool holds(const std::string& op, const Value& left, const Value& right);
  Value eval_slice(const TemplateExpression& e);
  Value eval_dict(const TemplateExpression& e);
  Arguments eval_arguments(const CallArguments& arguments);
  Value lookup(const std::string& name) const;
  const Value* find(const std::string& name) const;
  void assign(const std::string& name, Value value);
  void unpack(const AssignmentTarget& target, const Value& value);
  Value make_macro(const Macro& macro);
  Value call_macro(const Callable& callable, const Arguments& arguments);
  Value call_function(const std::string& name, const Arguments& arguments);
  Value add(const Value& a, const Value& b);
  Value multiply(const Value& a, const Value& b);
  Value arithmetic(const std::string& op, const Value& a, const Value& b);

  const std::string& source_;
  const Limits limits_;
  const std::time_t now_;
  std::vector<Variables> scopes_{Variables{}};  // the first one is global
  size_t frame_ = 0;                            // the first scope that the current macro sees, beside the global one
  std::shared_ptr<const Variables> enclosing_;
  std::deque<Namespace> namespaces_;
  std::string* out_ = nullptr;
  bool is_captured_ = false;  // the output is not that of the template itself
  std::vector<GeneratedRange> generated_;
  Position at_{};
  std::int64_t steps_ = 0, bytes_ = 0;
  int depth_ = 0;
};

// Attributes of strings and dicts that are functions. None: there is no such method.
bool has_text_method(const std::string& name);
Value call_text_method(Interpreter& in, const std::string& self, const std::string& name, const Arguments& arguments);
bool has_filter(const std::string& name);
bool has_test(const std::string& name);
Value apply_filter(Interpreter& in, const std::string& name, const Value& subject, const Arguments& arguments);
bool apply_test(Interpreter& in, const std::string& name, const Value& subject, const Arguments& arguments);

}  // namespace mw::data::jinja
