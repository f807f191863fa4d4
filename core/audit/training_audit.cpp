// SPDX-License-Identifier: Apache-2.0
// Lower bounds leave out everything that an implementation might avoid (attention, the output matrix, adapters,
// padding), so "impossible" has no exceptions.
#include "core/audit/training_audit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <tuple>

#include "core/audit/audit_rules.h"
#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/model/inventory.h"

namespace mw::audit {
namespace {

using rules::grouped;
using rules::percent_text;

constexpr double kTableRounding = 0.02;  // published figures are rounded
constexpr double kSameMfu = 0.03;        // relative distance to the formula that a claim used
constexpr double kGib = 1073741824.0;

bool known(double value) {
  return !std::isnan(value);
}

class TrainingRules {
 public:
  TrainingRules(const TrainingClaim& claim, TrainingAudit& out) : c_(claim), out_(out) {}

  void check_itself() {
    finite();
    rate_of_tokens();
    rows_of_a_step();
    duration();
    epochs();
    cost();
    perplexity();
    accuracy();
  }

  void check_floors(const AuditReference& reference) {
    const hardware::Chip& chip = reference.target.chip;
    losses(reference.model.vocab);
    memory(reference);
    if (!chip.bf16_flops || !chip.memory_bandwidth) return;
    compute(reference);
    weights_are_read(reference);
    utilisation(reference);
  }

 private:
  void add(const char* rule, const char* metric, double value, double floor, Verdict verdict, std::string text,
           std::string formula = {}) {
    out_.findings.push_back({.point = 0,
                             .rule = rule,
                             .metric = metric,
                             .value = value,
                             .floor = floor,
                             .verdict = verdict,
                             .text = std::move(text),
                             .formula = std::move(formula)});
  }

  double accumulation() const { return known(c_.accumulation) ? c_.accumulation : 1; }

  // The claimed rate of real tokens, or the one that step time and tokens give.
  double real_rate() const {
    if (known(c_.tokens_per_second)) return c_.tokens_per_second;
    if (known(c_.tokens) && known(c_.seconds) && c_.seconds > 0) return c_.tokens / c_.seconds;
    return TrainingClaim::kNot;
  }
  // Rows of one length are computed whole: batch x accumulation x max_len in a step.
  double padded_rate() const {
    if (known(c_.padded_tokens_per_second)) return c_.padded_tokens_per_second;
    if (known(c_.seconds_per_step) && c_.seconds_per_step > 0 && known(c_.batch) && known(c_.max_len))
      return c_.batch * accumulation() * c_.max_len / c_.seconds_per_step;
    return TrainingClaim::kNot;
  }

  void finite() {
    for (const auto& [name, value] : {std::pair{"train_loss", c_.train_loss},
                                      {"eval_loss", c_.eval_loss},
                                      {"mfu", c_.mfu},
                                      {"tokens_per_second", c_.tokens_per_second},
                                      {"seconds_per_step", c_.seconds_per_step}})
      if (std::isinf(value) || value < 0)
        add("UNITS", name, value, 0, Verdict::impossible,
            std::string(name) + " is " + number_text(value) + ", which no training run has", "finite and at least 0");
  }

  // One of two numbers must be the product of the others.
  void product(const char* metric, double given, double expected, const std::string& what, const std::string& formula) {
    if (!known(given) || !known(expected) || expected <= 0 || given <= 0) return;
    const double off = std::abs(given / expected - 1);
    if (off <= kTableRounding) return;
    constexpr double kWrong = 0.2;
    add("UNITS", metric, given, expected, off > kWrong ? Verdict::impossible : Verdict::suspicious,
        what + " " + number_text(given) + ", but the other numbers give " + number_text(expected), formula);
  }

  void rate_of_tokens() {
    if (known(c_.tokens) && known(c_.seconds) && c_.seconds > 0 && known(c_.tokens_per_second) && c_.tokens > 0) {
      const double overall = c_.tokens / c_.seconds;
      if (overall > c_.tokens_per_second * (1 + kTableRounding))
        add("UNITS", "tokens_per_second", c_.tokens_per_second, overall, Verdict::impossible,
            counted(grouped(c_.tokens), "token") + " in " + to_text(Seconds(c_.seconds)) + " are " +
                number_text(overall) + " tokens/s on average, more than the claimed " +
                number_text(c_.tokens_per_second),
            "tokens / seconds <= tokens_per_second");
    }
    if (known(c_.tokens_per_second) && known(c_.padded_tokens_per_second) &&
        c_.tokens_per_second > c_.padded_tokens_per_second * (1 + kTableRounding))
      add("UNITS", "tokens_per_second", c_.tokens_per_second, c_.padded_tokens_per_second, Verdict::impossible,
          "more tokens without padding than with it: " + number_text(c_.tokens_per_second) + " against " +
              number_text(c_.padded_tokens_per_second) + " per second",
          "tokens_per_second <= padded_tokens_per_second");
  }

  void rows_of_a_step() {
    if (!known(c_.batch) || !known(c_.max_len) || !known(c_.seconds_per_step)) return;
    const double most = c_.batch * accumulation() * c_.max_len;
    for (const auto& [name, rate] : {std::pair{"tokens_per_second", c_.tokens_per_second},
                                     {"padded_tokens_per_second", c_.padded_tokens_per_second}}) {
      if (!known(rate) || rate * c_.seconds_per_step <= most * (1 + kTableRounding)) continue;
      add("UNITS", name, rate, most / c_.seconds_per_step, Verdict::impossible,
          number_text(rate) + " tokens/s at " + to_text(Seconds(c_.seconds_per_step)) + " per step are " +
              counted(grouped(rate * c_.seconds_per_step), "token") + ", but a step has at most " + grouped(most),
          counted(grouped(c_.batch * accumulation()), "row") + " x " + counted(grouped(c_.max_len), "token"));
    }
  }

  void duration() {
    if (!known(c_.steps) || !known(c_.seconds_per_step) || !known(c_.seconds)) return;
    const double least = c_.steps * c_.seconds_per_step;  // the rest: loading, compilation, evaluation, checkpoints
    if (c_.seconds >= least * (1 - kTableRounding)) return;
    add("UNITS", "seconds", c_.seconds, least, Verdict::impossible,
        counted(grouped(c_.steps), "step") + " of " + to_text(Seconds(c_.seconds_per_step)) + " take " +
            to_text(Seconds(least)) + ", longer than the claimed " + to_text(Seconds(c_.seconds)),
        "steps x seconds_per_step <= seconds");
  }

  void epochs() {
    if (!known(c_.rows) || !known(c_.epochs) || !known(c_.steps) || !known(c_.batch)) return;
    const double most = c_.rows * c_.epochs / (c_.batch * accumulation());  // packing and drops make it fewer
    if (c_.steps <= std::ceil(most) + 1) return;
    add("UNITS", "steps", c_.steps, most, Verdict::suspicious,
        grouped(c_.steps) + " steps are more than " + number_text(c_.epochs) + " epochs of " + grouped(c_.rows) +
            " rows have",
        "rows x epochs / (batch x accumulation)");
  }

  void cost() {
    if (!known(c_.seconds)) return;
    product("usd", c_.usd, known(c_.usd_per_hour) ? c_.usd_per_hour * c_.seconds / 3600 : TrainingClaim::kNot,
            "the cost in dollars is", "usd_per_hour x hours");
  }

  void perplexity() {
    product("perplexity", c_.perplexity, known(c_.eval_loss) ? std::exp(c_.eval_loss) : TrainingClaim::kNot,
            "the perplexity is", "exp(eval_loss)");
  }

  // A token whose most likely token is another has at most probability 1/2, so it costs at least ln 2.
  void accuracy() {
    if (!known(c_.token_accuracy)) return;
    if (c_.token_accuracy < 0 || c_.token_accuracy > 1)
      return add("UNITS", "token_accuracy", c_.token_accuracy, 1, Verdict::impossible,
                 "a token accuracy of " + number_text(c_.token_accuracy) + " is not a share", "0 to 1");
    const double loss = known(c_.eval_loss) ? c_.eval_loss : c_.train_loss;
    const double least = (1 - c_.token_accuracy) * std::log(2.0);
    if (!known(loss) || loss >= least * (1 - kTableRounding)) return;
    add("LOSS-ACCURACY", known(c_.eval_loss) ? "eval_loss" : "train_loss", loss, least, Verdict::impossible,
        "a loss of " + number_text(loss) + " is too low for a token accuracy of " + percent_text(c_.token_accuracy) +
            ": each wrong token costs at least ln 2, " + number_text(least) + " on average",
        "(1 - " + number_text(c_.token_accuracy) + ") x ln 2");
  }

  void losses(int vocab) {
    const double uniform = std::log(static_cast<double>(std::max(2, vocab)));
    for (const auto& [name, loss] : {std::pair{"train_loss", c_.train_loss}, {"eval_loss", c_.eval_loss}})
      if (known(loss) && loss > uniform)
        add("LOSS-UNIFORM", name, loss, uniform, Verdict::suspicious,
            "a loss of " + number_text(loss) + " at the end is worse than that of equal probabilities for all " +
                counted(grouped(vocab), "token"),
            "ln " + grouped(vocab));
  }

  double bytes_of_a_weight(const AuditReference& reference) const {
    static constexpr std::array<std::pair<std::string_view, double>, 4> kBytes{
        {{"f32", 4}, {"bf16", 2}, {"int8", 1}, {"int4", 0.5}}};
    for (const auto& [name, bytes] : kBytes)
      if (c_.dtype == name) return bytes;
    return c_.dtype.empty() ? reference.weight_bytes : 0.5;
  }

  void memory(const AuditReference& reference) {
    if (!known(c_.peak_bytes)) return;
    const hardware::Target& target = reference.target;
    // "80 GB" of a data sheet may be 80 GiB: a runtime that reports more is right.
    const double marketed = static_cast<double>(target.chip.marketed_memory) / target.chip.devices_per_chip;
    const double per_device = std::max({marketed, target.chip.memory.value, target.chip.memory.high});
    if (per_device > 0 && c_.peak_bytes > per_device * (1 + kTableRounding))
      add("MEMORY", "peak_bytes", c_.peak_bytes, per_device, Verdict::impossible,
          "a peak of " + number_text(c_.peak_bytes / kGib, 4) + " GiB is more than a device of " + target.id + " has",
          number_text(per_device / kGib, 4) + " GiB");
    // Weights are somewhere on the devices, split at best. Gradients and moments of full training add to that.
    const double n = static_cast<double>(model::TensorInventory(reference.model).parameters());
    const double least = n * bytes_of_a_weight(reference) / target.devices();
    if (c_.peak_bytes >= least) return;
    add("MEMORY", "peak_bytes", c_.peak_bytes, least, c_.dtype.empty() ? Verdict::suspicious : Verdict::impossible,
        "a peak of " + number_text(c_.peak_bytes / kGib, 4) + " GiB is less than the weights take on " +
            counted(target.devices(), "device") + (c_.dtype.empty() ? ", unless they are stored in fewer bits" : ""),
        number_text(n / 1e9, 4) + "e9 x " + number_text(bytes_of_a_weight(reference)) + " B / " +
            std::to_string(target.devices()));
  }

  // Forward 2 FLOP per weight and token; as much again for the gradient of the inputs, which the first layer may omit,
  // and of the weights, which frozen ones omit.
  void compute(const AuditReference& reference) {
    const model::Config& config = reference.model;
    const double n = rules::weight_counts(config).matmul_elements;
    const double layers = static_cast<double>(std::max<size_t>(1, config.layers.size()));
    const bool full = c_.method == model::TrainMethod::full;
    const double each = (full ? 6 : 4) - 2 / layers;
    double chip = reference.target.chip.bf16_flops.value;
    if (c_.dtype == "int8" || c_.dtype == "fp8")
      chip = std::max({chip, reference.target.chip.fp8_flops.value, reference.target.chip.int8_ops.value});
    const double peak = chip * reference.target.chips();
    // The last rate assumes that all rows are computed at their longest, so it proves nothing.
    for (const auto& [name, rate, computed] :
         {std::tuple{"tokens_per_second", real_rate(), "without padding"},
          std::tuple{"padded_tokens_per_second", c_.padded_tokens_per_second, "with padding"},
          std::tuple{"seconds_per_step", padded_rate(), "if all rows have max_len tokens"}}) {
      if (!known(rate)) continue;
      const double share = rate * each * n / peak, most = peak / (each * n);
      const double ceiling =
          reference.target.chip.matmul_efficiency.value > 0 ? reference.target.chip.matmul_efficiency.value : kHighest;
      if (share <= ceiling) continue;
      const bool proven = share > 1 && std::string_view(name) != "seconds_per_step";
      add("FLOOR-COMPUTE", name, rate, most, proven ? Verdict::impossible : Verdict::suspicious,
          number_text(rate) + " tokens/s (" + computed + ") " +
              (share > 1 ? "exceed the " + grouped(most) + " that " + reference.target.id + " can compute at its peak"
                         : "need " + percent_text(share) + " of the peak of " + reference.target.id +
                               "; large matrix products alone reach " + percent_text(ceiling)),
          number_text(each, 3) + " x " + number_text(n / 1e9, 4) + "e9 FLOP per token, " +
              std::to_string(reference.target.chips()) + " x " + number_text(chip / 1e12, 4) + " TFLOP/s");
      return;  // the other rate says the same
    }
  }

  // Every micro-batch reads the weights for its forward and again for its backward.
  void weights_are_read(const AuditReference& reference) {
    if (!known(c_.seconds_per_step)) return;
    const double n = rules::weight_counts(reference.model).matmul_elements;
    const double bandwidth = reference.target.chip.memory_bandwidth.value * reference.target.chips();
    const double floor = 2 * accumulation() * n * bytes_of_a_weight(reference) / bandwidth;
    if (c_.seconds_per_step >= floor) return;
    add("FLOOR-MEMORY", "seconds_per_step", c_.seconds_per_step, floor,
        c_.dtype.empty() ? Verdict::suspicious : Verdict::impossible,
        "a step of " + to_text(Seconds(c_.seconds_per_step)) + " is shorter than " + to_text(Seconds(floor)) +
            ", in which " + reference.target.id + " can read the weights twice per micro-batch",
        "2 x " + grouped(accumulation()) + " x " + number_text(n / 1e9, 4) + "e9 x " +
            number_text(bytes_of_a_weight(reference)) + " B / " + number_text(bandwidth / 1e12, 4) + " TB/s");
  }

  void utilisation(const AuditReference& reference) {
    const double n = active_parameters(reference.model);
    const double peak = reference.target.chip.bf16_flops.value * reference.target.chips();
    const bool lora = c_.method != model::TrainMethod::full;
    const auto formula = [&](const char* name, double factor, double rate) {
      if (known(rate)) out_.mfu.push_back({name, factor * n * rate / peak});
    };
    formula("6N, padded tokens", 6, padded_rate());
    if (lora) formula("4N, padded tokens", 4, padded_rate());
    formula("6N, tokens without padding", 6, real_rate());
    if (lora) formula("4N, tokens without padding", 4, real_rate());
    if (known(padded_rate()) && known(c_.max_len)) {
      double widths = 0;
      for (const model::Layer& l : reference.model.layers) widths += static_cast<double>(l.heads) * l.head_dim;
      out_.mfu.push_back(
          {"6N and attention, padded tokens", (6 * n + 12 * widths * c_.max_len) * padded_rate() / peak});
    }
    if (!known(c_.mfu)) return;
    if (c_.mfu > 1)
      return add("MFU", "mfu", c_.mfu, 1, Verdict::impossible,
                 "an MFU of " + percent_text(c_.mfu) + " exceeds the peak; a percentage is given as a share here",
                 "at most 1");
    const MfuFormula* nearest = nullptr;
    const auto off = [&](const MfuFormula& f) { return std::abs(f.share / c_.mfu - 1); };
    for (const MfuFormula& f : out_.mfu)
      if (!nearest || off(f) < off(*nearest)) nearest = &f;
    if (!nearest) return;
    const auto named =
        std::find_if(out_.mfu.begin(), out_.mfu.end(), [&](const MfuFormula& f) { return f.name == c_.mfu_formula; });
    if (named != out_.mfu.end() && off(*named) > kSameMfu)
      add("MFU", "mfu", c_.mfu, named->share, off(*named) > kWrongMfu ? Verdict::impossible : Verdict::suspicious,
          "the claimed speed is an MFU of " + percent_text(named->share) + " by \"" + named->name + "\", not " +
              percent_text(c_.mfu) + (off(*nearest) <= kSameMfu ? "; \"" + nearest->name + "\" gives that" : ""),
          named->name);
    else if (named != out_.mfu.end())
      out_.claimed_formula = named->name;
    else if (off(*nearest) <= kSameMfu)
      out_.claimed_formula = nearest->name;
    else
      add("MFU", "mfu", c_.mfu, nearest->share, Verdict::suspicious,
          "no formula gives the claimed MFU of " + percent_text(c_.mfu) + " at this speed; the nearest, \"" +
              nearest->name + "\", gives " + percent_text(nearest->share),
          nearest->name);
  }

  static constexpr double kHighest = 0.9, kWrongMfu = 0.2;
  const TrainingClaim& c_;
  TrainingAudit& out_;
};

void sort_by_verdict(std::vector<AuditFinding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const AuditFinding& a, const AuditFinding& b) { return a.verdict > b.verdict; });
}

}  // namespace

double active_parameters(const model::Config& config) {
  const auto all = static_cast<double>(model::TensorInventory(config).parameters());
  if (config.experts == 0) return all;
  const double each = 3.0 * config.expert_dim * config.dim * static_cast<double>(config.layers.size());
  return all - each * (config.experts - config.experts_per_token);
}

TrainingAudit audit(const TrainingClaim& claim) {
  TrainingAudit out;
  TrainingRules(claim, out).check_itself();
  sort_by_verdict(out.findings);
  return out;
}

TrainingAudit audit(const TrainingClaim& claim, const AuditReference& reference) {
  TrainingAudit out;
  TrainingRules rules(claim, out);
  rules.check_itself();
  rules.check_floors(reference);
  sort_by_verdict(out.findings);
  return out;
}

}  // namespace mw::audit
