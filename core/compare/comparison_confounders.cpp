// SPDX-License-Identifier: Apache-2.0
// Finds confounders of serving comparisons: differences in load, measurement or conditions other than the server.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "core/base/counted.h"
#include "core/compare/comparison_parts.h"
#include "core/experiment/parameters.h"

namespace mw::compare::comparing {
namespace {

using formats::BenchPoint;
using formats::BenchSet;

// Normalises model names, so that "google/gemma-4-31B-it" and "gemma4-31b" are equal.
std::string plain_model(const std::string& name) {
  std::string base = name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1), out;
  for (const char c : base)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (out.ends_with("it")) out.resize(out.size() - 2);
  return out;
}

// Conditions that are confounders, with their display names; other conditions are only listed as settings.
std::vector<std::pair<std::string, std::string>> conditions() {
  std::vector<std::pair<std::string, std::string>> all{{"version", "server version"}, {"tokenizer", "tokenizer"}};
  for (const experiment::Parameter& p : experiment::parameters())
    if ((p.group == "Serving" || p.group == "Sweep") && !p.columns.confounder.empty())
      all.emplace_back(p.key.substr(p.key.find('.') + 1), p.columns.confounder);
  return all;
}

class Confounders {
 public:
  Confounders(const Runs& runs, Comparison& out) : runs_(runs), out_(out) {}

  void find_all() {
    compare_loads();
    compare_identity();
    compare_definitions();
    for (const auto& [key, label] : conditions()) compare_condition(key, label);
    find_cached_prompts();
    compare_request_counts();
    report_findings();
  }

 private:
  std::vector<std::string> column(const std::function<std::string(const ComparedRun&)>& text) const {
    std::vector<std::string> values;
    for (const ComparedRun& run : runs_) values.push_back(text(run));
    return values;
  }
  void add_if_different(const std::string& key, const std::string& property, const std::vector<std::string>& values,
                        MissingValue missing = MissingValue::ignored) {
    if (are_different(values, missing)) confound(out_, key, property + " differs (" + listed(out_, values) + ")");
  }

  // Reports runs without a common load.
  void compare_loads() {
    const bool common = std::any_of(out_.rows.begin(), out_.rows.end(), [](const ComparisonRow& row) {
      return row.kind == ComparisonRow::Kind::result && !row.key.starts_with("tco.") &&
             std::count_if(row.values.begin(), row.values.end(), [](const auto& v) { return v.has_value(); }) > 1;
    });
    if (!common)
      confound(out_, "loads", "no two runs have a load in common: their lengths and rates differ",
               Fairness::meaningless);
    std::set<bool> loops;
    std::vector<std::string> shown;
    for (const ComparedRun& run : runs_) {
      bool open = false, closed = false;
      for (const BenchPoint& p : run.sweep->set.points) {
        open = open || !std::isnan(p.request_rate);
        closed = closed || (std::isnan(p.request_rate) && p.max_concurrency > 0);
      }
      if (open != closed) loops.insert(open);
      shown.push_back(open && closed ? "both" : open ? "open" : closed ? "closed" : "");
    }
    if (loops.size() > 1) add_if_different("loop", "the kind of loop", shown);
  }

  void compare_identity() {
    const auto models = column([](const ComparedRun& r) { return plain_model(r.sweep->set.model); });
    const auto targets = column([](const ComparedRun& r) { return r.sweep->set.target; });
    const bool targets_differ = are_different(targets, MissingValue::ignored);
    if (are_different(models, MissingValue::ignored))
      confound(out_, "model",
               "the model differs (" + listed(out_, column([](const ComparedRun& r) { return r.sweep->set.model; })) +
                   ")" + (targets_differ ? ", and so does the target" : ""),
               targets_differ ? Fairness::meaningless : Fairness::confounded);
    add_if_different("provenance", "the source",
                     column([](const ComparedRun& r) { return std::string(to_string(r.provenance)); }));
    add_if_different("tool", "the measuring tool", column([](const ComparedRun& r) {
                       const std::string& tool = r.sweep->set.tool;  // the version is removed
                       const size_t digit = tool.find_first_of("0123456789");
                       return tool.substr(
                           0, digit == std::string::npos ? tool.size() : tool.find_last_not_of(' ', digit - 1) + 1);
                     }));
  }

  void compare_definitions() {
    const auto names = [&](const char* key) {
      return column([key](const ComparedRun& r) { return definition_of(r.sweep->set, key); });
    };
    add_if_different("definitions.tpot", "the definition of TPOT", names("tpot"));
    add_if_different("definitions.start", "the start time of latencies", names("start"));
    add_if_different("definitions.peak", "the definition of the output rate", names("peak"));
  }

  void compare_condition(const std::string& key, const std::string& label) {
    add_if_different(key, label, column([&](const ComparedRun& r) { return r.sweep->set.condition(key); }),
                     missing_condition(key));
  }

  // Repeated prompts with an enabled prefix cache are answered from the cache, in one or both runs.
  void find_cached_prompts() {
    if (std::any_of(out_.confounders.begin(), out_.confounders.end(),
                    [](const Confounder& c) { return c.key == "prefix_cache"; }))
      return;
    for (size_t c = 0; c < runs_.size(); ++c) {
      const BenchSet& set = runs_[c].sweep->set;
      const std::string cache = set.condition("prefix_cache"), prompts = set.condition("prompts");
      const bool has_signs = std::any_of(
          runs_[c].sweep->findings.begin(), runs_[c].sweep->findings.end(),
          [](const audit::AuditFinding& f) { return f.rule == "PREFIX-CACHE" || f.rule == "FLOOR-PREFILL"; });
      if (cache == "off" || !((cache == "on" && prompts != "salted") || (cache.empty() && has_signs))) continue;
      confound(out_, "prefix_cache",
               called(out_, c) + (cache.empty() ? ": the prefix cache is not recorded, but TTFT suggests that it is on"
                                                : ": the prefix cache is on and prompts may repeat"));
      return;
    }
  }

  void compare_request_counts() {
    std::vector<std::string> shown;
    long least = std::numeric_limits<long>::max(), most = 0;
    for (const ComparedRun& run : runs_) {
      long low = std::numeric_limits<long>::max(), high = 0;
      for (const BenchPoint& p : run.sweep->set.points) {
        if (p.num_prompts <= 0) continue;
        low = std::min(low, p.num_prompts);
        high = std::max(high, p.num_prompts);
      }
      shown.push_back(high == 0     ? ""
                      : low == high ? std::to_string(low)
                                    : std::to_string(low) + " to " + std::to_string(high));
      if (high > 0) least = std::min(least, low), most = std::max(most, high);
    }
    if (most == 0) return;
    if (most > 2 * least)
      add_if_different("requests", "the number of requests per point", shown);
    else if (least < 100)
      confound(out_, "requests",
               counted(least, "request") + " per point are too few for percentiles (" + listed(out_, shown) + ")");
  }

  void report_findings() {
    struct Kind {
      const char *key, *text;
      std::function<bool(const audit::AuditFinding&)> is;
    };
    static const std::vector<Kind> kinds{
        {"floor", "faster than the peak rates of the hardware allow",
         [](const audit::AuditFinding& f) {
           return f.verdict == audit::Verdict::impossible && f.rule != "UNITS" && f.rule != "CONTEXT";
         }},
        {"units", "with contradictory numbers",
         [](const audit::AuditFinding& f) { return f.rule == "UNITS" || f.rule == "CONTEXT"; }},
        {"client_limited", "limited by the client, not by the server",
         [](const audit::AuditFinding& f) { return f.rule == "LITTLE"; }},
        {"saturation", "with an overloaded server, so that TTFT depends on the length of the run",
         [](const audit::AuditFinding& f) { return f.rule == "SATURATED"; }},
        {"failed", "with failed requests", [](const audit::AuditFinding& f) { return f.rule == "FAILED"; }},
        {"lengths", "whose lengths differ from the requested ones",
         [](const audit::AuditFinding& f) { return f.rule == "LENGTHS"; }},
        {"omission", "whose client delayed requests", [](const audit::AuditFinding& f) { return f.rule == "LOOP"; }}};
    for (const Kind& kind : kinds) {
      size_t points = 0, hit_columns = 0;
      std::string where;
      for (size_t c = 0; c < runs_.size(); ++c) {
        std::set<size_t> hit;
        for (const audit::AuditFinding& f : runs_[c].sweep->findings)
          if (kind.is(f)) hit.insert(f.point);
        if (hit.empty()) continue;
        points += hit.size(), ++hit_columns;
        where += (where.empty() ? "" : ", ") + std::to_string(hit.size()) + " in " + called(out_, c);
      }
      if (points > 0)
        confound(out_, kind.key,
                 counted(points, "point") + " " + kind.text + " (" +
                     (hit_columns == 1 ? where.substr(where.find("in ")) : where) + ")");
    }
  }

  const Runs& runs_;
  Comparison& out_;
};

}  // namespace

void serving_confounders(const Runs& runs, Comparison& out) {
  Confounders(runs, out).find_all();
}

}  // namespace mw::compare::comparing
