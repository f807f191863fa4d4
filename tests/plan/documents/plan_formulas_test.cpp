// SPDX-License-Identifier: GPL-3.0-or-later
// Every formula that a plan shows gives the number beside it, within the rounding of its digits: of random experiments,
// each formula is read and worked out.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "core/base/rng.h"
#include "core/model/catalogue.h"
#include "core/plan/experiment/experiment_plan.h"
#include "tests/base/instrumented.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

struct Interval {
  double low = 0, high = 0;
};
Interval spread(Interval a, Interval b, double (*f)(double, double)) {
  const double all[]{f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return {*std::min_element(all, all + 4), *std::max_element(all, all + 4)};
}

// sum: product {(+|-) product};  product: atom {(x|/) atom};  atom: "(" sum ")" | [$] number [kMBT] [unit]; any
// [remark] behind. A number stands for all that round to it.
class ShownArithmetic {
 public:
  explicit ShownArithmetic(std::string text) : text_(std::move(text)) {}

  std::optional<Interval> value() {
    const Interval all = sum();
    skip();
    if (at_ != text_.size()) bad_ = true;
    return bad_ ? std::nullopt : std::optional(all);
  }

 private:
  Interval sum() {
    Interval all = product();
    for (char sign = peek(); sign == '+' || sign == '-'; sign = peek()) {
      ++at_;
      const Interval next = product();
      all = sign == '+' ? Interval{all.low + next.low, all.high + next.high}
                        : Interval{all.low - next.high, all.high - next.low};
    }
    return all;
  }
  Interval product() {
    Interval all = atom();
    for (char sign = peek(); sign == 'x' || sign == '/'; sign = peek()) {
      ++at_;
      all = spread(
          all, atom(),
          sign == 'x' ? [](double a, double b) { return a * b; } : [](double a, double b) { return a / b; });
    }
    return all;
  }
  Interval atom() {
    Interval all;
    if (peek() == '(') {
      ++at_;
      all = sum();
      bad_ = bad_ || peek() != ')';
      ++at_;
    } else {
      all = number();
    }
    if (peek() == '[') at_ = std::min(text_.find(']', at_), text_.size() - 1) + 1;
    return all;
  }
  Interval number() {
    if (peek() == '$') ++at_;
    static const std::regex shape(
        R"(^(-?\d+)(\.\d+)?(e[+-]?\d+)?([kMBT](?![A-Za-z]))?( (?:[KMGTP]iB|B|s|h|TFLOP(?:/s)?|GB(?:/s)?)(?![A-Za-z]))?)");
    std::smatch m;
    const std::string rest = text_.substr(std::min(at_, text_.size()));
    if (bad_ || !std::regex_search(rest, m, shape)) {
      bad_ = true;
      return {};
    }
    at_ += static_cast<size_t>(m.length(0));
    static const std::map<std::string, double> kScales{{"k", 1e3},       {"M", 1e6},       {"B", 1e9},
                                                       {"T", 1e12},      {" KiB", 0x1p10}, {" MiB", 0x1p20},
                                                       {" GiB", 0x1p30}, {" TiB", 0x1p40}, {" PiB", 0x1p50}};
    const double v = std::stod(m[1].str() + m[2].str() + m[3].str());
    const double digits = m[2].length() > 0 ? static_cast<double>(m[2].length()) - 1 : 0;
    double half = 0.5 * std::pow(10, -digits + (m[3].length() > 0 ? std::stod(m[3].str().substr(1)) : 0));
    if (const std::string whole = m[1].str();
        m[2].length() + m[3].length() == 0 && whole.size() > 4 && whole.find_last_not_of('0') < 4)
      half = 0.5 * std::pow(10, whole.size() - 4);  // four digits, the rest zeros
    double scale = 1;
    const auto suffix = kScales.find(m[4].str()), unit = kScales.find(m[5].str());
    if (suffix != kScales.end()) scale *= suffix->second;
    if (unit != kScales.end()) scale *= unit->second;
    if (scale == 1)  // four digits, without the zeros at their end
      half = v == 0 ? 0 : std::min(half, 0.5 * std::pow(10, std::floor(std::log10(std::abs(v))) - 3));
    return {(v - half) * scale, (v + half) * scale};
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string text_;
  size_t at_ = 0;
  bool bad_ = false;
};

void expect_shows(const std::string& arithmetic, double value, const std::string& where) {
  const auto shown = ShownArithmetic(arithmetic).value();
  ASSERT_TRUE(shown) << where << ": cannot be read: " << arithmetic;
  const double slack = 1e-9 * std::abs(value) + (where.starts_with("memory") ? 1 : 0);
  EXPECT_GE(value, shown->low - slack) << where << ": " << arithmetic;
  EXPECT_LE(value, shown->high + slack) << where << ": " << arithmetic;
}

int expect_shows(const plan::Estimate& e, const std::string& where) {
  if (!e.inputs.empty()) expect_shows(e.inputs, e.value, where);
  return e.inputs.empty() ? 0 : 1;
}

int check_plan(const plan::Plan& p) {
  int formulas = 0;
  for (const plan::Buffer& b : p.memory.buffers) {
    const size_t equals = b.formula.find(" = ");
    const bool plain =
        b.name == "runtime" || b.formula == "as the server sets it aside" || b.formula == "the engine's own formulas";
    EXPECT_EQ(equals == std::string::npos, plain) << b.name << ": " << b.formula;
    if (equals == std::string::npos) continue;
    expect_shows(b.formula.substr(equals + 3), static_cast<double>(b.bytes.value), "memory " + b.name);
    ++formulas;
  }
  formulas += expect_shows(p.memory.total, "memory total");
  for (const plan::Term& t : p.step.terms) {
    const std::string where = std::string(to_string(t.phase)) + " " + t.part;
    formulas += expect_shows(t.compute, where + " compute") + expect_shows(t.memory, where + " passes") +
                expect_shows(t.communication, where + " collectives");
  }
  formulas += expect_shows(p.step.seconds, "step") + expect_shows(p.step.compute, "step compute") +
              expect_shows(p.step.memory, "step passes") + expect_shows(p.step.communication, "step collectives") +
              expect_shows(p.step.fixed, "step fixed") + expect_shows(p.compile, "compile") +
              expect_shows(p.run.hours, "hours") + expect_shows(p.run.usd, "usd");
  if (p.serve) formulas += expect_shows(p.serve->ttft, "ttft") + expect_shows(p.serve->decode_step, "decode step");
  return formulas;
}

// A number as number_text() writes it with that many digits.
Interval shown_number(const std::string& text, int digits) {
  const double v = std::stod(text);
  const double half = v == 0 ? 0 : 0.5 * std::pow(10, std::floor(std::log10(std::abs(v))) - digits + 1);
  return {v - half, v + half};
}

// The lines of text that add up or multiply.
int check_text(const std::string& text) {
  static const std::regex buffer(R"(^  \S+ +(\S+ \S+)  .* = (.*)$)");
  static const std::regex step(
      R"(^step: (\S+) s .* = (\S+) compute \+ (\S+) memory \+ (\S+) collectives - (\S+) hidden \+ (\S+) fixed$)");
  static const std::regex term(R"(^  \S+ +.* (\d+\.\d{4}) +(\d+\.\d{4}) +(\d+\.\d{4}) +(\d+\.\d{4}) +(\d+\.\d{4})$)");
  int lines = 0;
  std::istringstream in(text);
  bool terms = false;
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_match(line, m, buffer)) {
      const auto shown = ShownArithmetic(m[1]).value(), formula = ShownArithmetic(m[2]).value();
      const bool meet = shown && formula && shown->low <= formula->high + 1 && formula->low <= shown->high + 1;
      EXPECT_TRUE(meet) << line;
      ++lines;
    } else if (std::regex_match(line, m, step)) {
      const Interval s = shown_number(m[1], 3), c = shown_number(m[2], 3), b = shown_number(m[3], 3),
                     x = shown_number(m[4], 3), h = shown_number(m[5], 2), f = shown_number(m[6], 2);
      EXPECT_LE(s.low, c.high + b.high + x.high - h.low + f.high) << line;
      EXPECT_GE(s.high, c.low + b.low + x.low - h.high + f.low) << line;
      terms = true;
      ++lines;
    } else if (terms && std::regex_match(line, m, term)) {
      EXPECT_NEAR(std::stod(m[5]), std::stod(m[1]) + std::stod(m[2]) + std::stod(m[3]) - std::stod(m[4]), 3e-4) << line;
      ++lines;
    }
  }
  return lines;
}

template <class T>
const T& one_of(Rng& rng, const std::vector<T>& all) {
  return all[rng.below(all.size())];
}

experiment::Experiment random_experiment(Rng& rng) {
  experiment::Experiment e;
  const std::string kind = one_of<std::string>(rng, {"train", "train", "train", "serve", "size"});
  e.set_value("kind", kind);
  e.set_value("model.id", one_of(rng, model::catalogue_ids()));
  e.set_value("target.id", one_of(rng, test::context().catalogue.target_ids()));
  const hardware::Target target = test::context().catalogue.target(e.value("target.id").get<std::string>());
  const std::vector<int> powers{1, 2, 4, 8};
  if (rng.below(3) > 0) {
    const int tp = std::min(one_of(rng, powers), target.devices());
    e.set_value("mesh.fsdp", target.devices() / tp);
    e.set_value("mesh.tp", tp);
  }
  e.set_value("lora.rank", 1 + rng.below(64));
  const std::vector<std::string> projections{"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                             "gate_proj", "up_proj", "down_proj"};
  Json targets = Json::array();
  for (const std::string& p : projections)
    if (rng.below(2)) targets.push_back(p);
  if (!targets.empty()) e.set_value("lora.targets", targets);
  e.set_value("lora.dropout", rng.below(2) ? 0.1 : 0.0);
  e.set_value("train.method", one_of<std::string>(rng, {"lora", "lora", "full"}));
  e.set_value("train.dtype", one_of<std::string>(rng, {"f32", "bf16"}));
  e.set_value("train.adapter_dtype", one_of<std::string>(rng, {"auto", "bf16", "f32"}));
  e.set_value("train.moment_dtype", one_of<std::string>(rng, {"auto", "bf16", "f32"}));
  e.set_value("train.attention", one_of<std::string>(rng, {"auto", "materialised", "fused"}));
  e.set_value("train.remat", one_of<std::string>(rng, {"none", "block", "layer"}));
  e.set_value("train.batch", 1 + rng.below(33));
  e.set_value("train.accumulation", 1 + rng.below(3));
  e.set_value("train.loss_chunk", one_of(rng, std::vector<int>{0, 128, 1000}));
  e.set_value("data.max_len", 16 + rng.below(4000));
  e.set_value("data.mean_len", rng.below(900));
  e.set_value("data.packing", rng.below(2) == 0);
  e.set_value("serve.kv_dtype", one_of<std::string>(rng, {"bf16", "fp8"}));
  e.set_value("serve.max_num_seqs", 1 + rng.below(200));
  if (rng.below(2)) e.set_value("price.usd_per_chip_hour", 0.1 * static_cast<double>(1 + rng.below(90)));
  if (rng.below(3) == 0) {
    e.set_value("train.epochs", 0.5 * static_cast<double>(1 + rng.below(8)));
    e.set_value("data.rows", 1 + rng.below(50000));
  }
  return e;
}

TEST(PlanFormulas, EveryFormulaEvaluatesToItsValue) {
  const int wanted = test::kInstrumented ? 30 : 200;
  Rng rng{2323};
  int planned = 0, runnable = 0, formulas = 0, lines = 0;
  for (int i = 0; i < 10 * wanted && planned < wanted; ++i) {
    const experiment::Experiment e = random_experiment(rng);
    std::optional<ExperimentPlan> p;
    try {
      p = plan_experiment(e, test::context());
    } catch (const Error&) {
      continue;  // a mesh, model or stack that cannot be
    }
    SCOPED_TRACE(e.text());
    ++planned;
    runnable += p->plan.refusals.empty() ? 1 : 0;
    formulas += check_plan(p->plan);
    for (const SizePoint& point : p->points) formulas += check_plan(point.plan);
    lines += check_text(planned_text(*p));
    if (HasFailure()) return;
  }
  EXPECT_EQ(planned, wanted);
  EXPECT_GT(formulas, 20 * wanted);
  EXPECT_GT(runnable, wanted / 4);
  EXPECT_GT(lines, 10 * runnable);  // a refused plan has neither memory nor time
}

// The line that was found: tile padding was left out of 1.60M x 4 B.
TEST(PlanFormulas, FormulaContainsTilePadding) {
  const ExperimentPlan p = plan_experiment(
      experiment::Experiment::load(MW_RESOURCES "/examples/torchax-gemma2-2b-alpaca.json"), test::context());
  for (const plan::Buffer& b : p.plan.memory.buffers)
    EXPECT_TRUE(b.name != "adapters" || b.formula.find("[padding of tiles]") != std::string::npos) << b.formula;
}

}  // namespace
}  // namespace mw::plan
