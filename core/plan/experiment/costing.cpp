// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/costing.h"

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/experiment/bound_experiment.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/document/plan_request.h"
#include "core/serve/load/sweep.h"

namespace mw::plan {
namespace {

using experiment::Kind;

// The experiment as one that serves on its serve.target.
experiment::Experiment as_served(const experiment::Experiment& e, const experiment::BoundExperiment& config,
                                 const PlanContext& context) {
  if (config.kind == Kind::serve) return e;
  experiment::Experiment out = e;
  out.set_value("kind", "serve");
  retarget(out, context.catalogue.target(config.serve.target, "serve.target").id, context);
  for (const mesh::MeshAxis& axis : config.mesh.axes) out.erase("mesh." + axis.name);  // of the training
  out.erase("train.stack");
  out.erase("price.usd_per_chip_hour");
  out.erase("price.date");
  return out;
}

hardware::Price listed_price(const PlanContext& context, const std::string& chip, const std::string& price_class) {
  hardware::Price none;
  none.chip = chip;
  const hardware::Price* listed = context.catalogue.price(chip, {}, price_class);
  return listed ? *listed : none;
}

// A price of the experiment replaces that on demand.
hardware::Price price_of(const PlanContext& context, const std::string& chip, CostClass price_class,
                         const options::Cost& cost, const hardware::Price& own) {
  switch (price_class) {
    case CostClass::on_demand:
      return own;
    case CostClass::spot:
      return listed_price(context, chip, "spot");
    case CostClass::committed:
      break;
  }
  return listed_price(context, chip, std::string(to_string(cost.commitment)));
}

TrainedFor predicted_training(const experiment::BoundExperiment& config, const Plan& plan) {
  if (config.measured.hours > 0) return {config.measured.hours, "measured: " + config.measured.source};
  return {plan.run.hours.value, "predicted"};
}

}  // namespace

std::optional<CostPlan> cost_plan(const experiment::Experiment& e, const PlanContext& context,
                                  const std::optional<TrainedFor>& measured, const Plan* planned,
                                  const std::stop_token& stop) {
  const experiment::BoundExperiment& config = e.config();
  const bool trains = config.kind == Kind::train;
  if (config.cost.requests_per_day <= 0 || config.kind == Kind::size || (trains && config.serve.target.empty()))
    return std::nullopt;
  CostPlan out{.level = {.ttft_s = config.sweep.slo.ttft_ms / 1e3,
                         .tpot_s = config.sweep.slo.tpot_ms / 1e3,
                         .e2e_s = config.sweep.slo.e2e_ms / 1e3},
               .variation = config.cost.variation};
  const experiment::Experiment served = as_served(e, config, context);
  const Request server = plan_request(served, context);
  out.serve_target = server.target.id;
  out.input_len = server.serve.input_len;
  out.output_len = server.serve.output_len;
  const Plan server_plan = predict(server);
  out.fits = server_plan.fits();
  out.found = server_diagnostics(served, context, {.plan = &server_plan, .request = &server});
  if (out.fits) out.capacity = server_capacity(ServeStepModel(server), server.serve, out.level);
  CostInputs inputs{.requests_per_day = config.cost.requests_per_day,
                    .growth = config.cost.growth,
                    .months = config.cost.months,
                    .peak = config.cost.peak,
                    .capacity = out.capacity.requests_per_s,
                    .start_hours = server_plan.compile.value / 3600};
  std::optional<Request> training;
  if (trains) {
    training = plan_request(e, context);
    if (!planned && runs_here(*training)) read_rows(config, *training, stop);
    const Plan plan = planned ? *planned : predict(*training);
    out.target = training->target.id;
    out.training = measured.value_or(predicted_training(config, plan));
    const double checkpoint = plan.step.seconds.value * static_cast<double>(config.train.checkpoint_every);
    inputs.lost_train_hours = (plan.compile.value + checkpoint / 2) / 3600;
  } else if (measured) {
    out.training = *measured;
  }
  inputs.train_hours = out.training.hours;
  hardware::Price own = server.price;
  if (trains && config.serve.usd_per_chip_hour > 0) {
    own.usd_per_chip_hour = config.serve.usd_per_chip_hour;
    own.price_class = "own";
    own.source = "given as serve.usd_per_chip_hour";
  }
  for (const CostClass c : all_values<CostClass>()) {
    CostOfClass& of = out.classes[static_cast<size_t>(c)];
    of.price_class = c;
    of.serve = price_of(context, server.target.chip.id, c, config.cost, own);
    of.inputs = inputs;
    of.inputs.serve_usd_per_hour = of.serve.usd_per_chip_hour * server.target.chips();
    of.inputs.preemptions = c == CostClass::spot ? config.cost.preemptions : 0;
    if (training) {
      of.train = price_of(context, training->target.chip.id, c, config.cost, training->price);
      of.inputs.train_usd_per_hour = of.train.usd_per_chip_hour * training->target.chips();
    } else if (measured) {
      of.train = of.serve;
      of.inputs.train_usd_per_hour = of.inputs.serve_usd_per_hour;
    }
    const bool known =
        of.inputs.serve_usd_per_hour > 0 && (of.inputs.train_hours <= 0 || of.inputs.train_usd_per_hour > 0);
    if (known && inputs.capacity > 0) of.cost = total_cost(of.inputs);
  }
  if (out.classes.front().cost) out.swings = swings(out.classes.front().inputs, out.variation);
  return out;
}

std::array<CostBreakEven, 3> break_even(const CostPlan& a, const CostPlan& b) {
  std::array<CostBreakEven, 3> out;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!a.classes[i].cost || !b.classes[i].cost) continue;
    out[i].requests_per_day = break_even_requests(a.classes[i].inputs, b.classes[i].inputs);
    out[i].hours = break_even_hours(a.classes[i].inputs, b.classes[i].inputs);
  }
  return out;
}

namespace {

std::string name_of(CostClass c) {
  return std::string(to_string(c));
}

Json class_json(const CostOfClass& of) {
  Json out{{"class", name_of(of.price_class)},
           {"train_usd_per_chip_hour", positive_or_null(of.train.usd_per_chip_hour)},
           {"serve_usd_per_chip_hour", positive_or_null(of.serve.usd_per_chip_hour)},
           {"source", of.serve.source},
           {"total_usd", nullptr}};
  if (!of.cost) return out;
  const TotalCost& c = *of.cost;
  out.update({{"total_usd", c.total()},
              {"training_usd", c.training},
              {"serving_usd", c.serving},
              {"starting_usd", c.starting},
              {"preemption_usd", c.preempted},
              {"first_servers", c.first_servers},
              {"last_servers", c.last_servers},
              {"requests", c.requests},
              {"usd_per_million_requests", c.requests > 0 ? c.total() / c.requests * 1e6 : 0}});
  return out;
}

std::string level_text(const ServiceLevel& level) {
  std::string text;
  const auto limit = [&](double seconds, const char* name) {
    if (seconds > 0) text += (text.empty() ? "" : ", ") + std::string(name) + " " + to_text(Seconds(seconds));
  };
  limit(level.ttft_s, "TTFT");
  limit(level.tpot_s, "TPOT");
  limit(level.e2e_s, "E2E");
  return level.any() ? text : "no service level";
}

}  // namespace

Json price_json(const Request& request) {
  const hardware::Price& price = request.price;
  if (price.usd_per_chip_hour <= 0) return nullptr;
  const std::optional<int>& age = request.price_days;
  return {{"amount", price.usd_per_chip_hour},
          {"currency", "USD"},
          {"per", "chip-hour"},
          {"source", price.source},
          {"date", price.date.empty() ? Json(nullptr) : Json(price.date)},
          {"age_days", age ? Json(*age) : Json(nullptr)},
          {"stale", age > hardware::kPriceDays}};
}

Json to_json(const CostPlan& p) {
  Json classes = Json::array(), tornado = Json::array();
  for (const CostOfClass& of : p.classes) classes.push_back(class_json(of));
  for (const Swing& s : p.swings)
    tornado.push_back({{"input", s.input}, {"low_usd", s.low_usd}, {"high_usd", s.high_usd}});
  const CostInputs& in = p.classes.front().inputs;
  return {{"target", p.target.empty() ? Json(nullptr) : Json(p.target)},
          {"serve_target", p.serve_target},
          {"training", {{"hours", p.training.hours}, {"source", p.training.source}}},
          {"load",
           {{"requests_per_day", in.requests_per_day},
            {"growth", in.growth},
            {"months", in.months},
            {"peak", in.peak},
            {"input_len", p.input_len},
            {"output_len", p.output_len}}},
          {"capacity",
           {{"requests_per_second", p.capacity.requests_per_s},
            {"concurrency", p.capacity.concurrency},
            {"ttft_ms", p.capacity.ttft_s * 1e3},
            {"tpot_ms", p.capacity.tpot_s * 1e3},
            {"e2e_ms", p.capacity.e2e_s * 1e3},
            {"wait_ms", p.capacity.waits_without_limit ? Json(nullptr) : Json(p.capacity.wait_s * 1e3)},
            {"share", p.level.share}}},
          {"start_hours", in.start_hours},
          {"diagnostics", to_json(p.found)},
          {"classes", std::move(classes)},
          {"variation", p.variation},
          {"tornado", std::move(tornado)}};
}

Json to_json(const std::array<CostBreakEven, 3>& all) {
  Json out = Json::array();
  for (const CostClass c : all_values<CostClass>()) {
    const CostBreakEven& b = all[static_cast<size_t>(c)];
    out.push_back(
        {{"class", name_of(c)}, {"requests_per_day", or_null(b.requests_per_day)}, {"hours", or_null(b.hours)}});
  }
  return out;
}

std::string load_text(const CostPlan& p) {
  const CostInputs& in = p.classes.front().inputs;
  std::string out;
  if (p.training.hours > 0)
    out += formatted("trained %s%s (%s), ", to_text(Seconds(p.training.hours * 3600)).c_str(),
                     p.target.empty() ? "" : (" on " + p.target).c_str(), p.training.source.c_str());
  out += formatted("served on %s: %s requests a day, %+.3g %% a month, for %s\n", p.serve_target.c_str(),
                   count_text(in.requests_per_day).c_str(), 100 * in.growth, counted(in.months, "month").c_str());
  if (!p.fits) return out + "the model does not fit on one server\n";
  if (p.capacity.requests_per_s <= 0) return out + "no load meets " + level_text(p.level) + " on this server\n";
  const std::string rate = number_text(p.capacity.requests_per_s, 3) + " requests/s";
  out += formatted("one server %s (%d at once, %s), ",
                   (p.level.any() ? serve::slo_text({.at_slo = p.capacity.requests_per_s}) : "takes " + rate).c_str(),
                   p.capacity.concurrency, level_text(p.level).c_str());
  out += p.capacity.waits_without_limit ? std::string("without a limit for waiting\n")
                                        : formatted("%.0f %% wait less than %s\n", 100 * p.level.share,
                                                    to_text(Seconds(p.capacity.wait_s)).c_str());
  return out;
}

std::string to_text(const CostPlan& p) {
  std::string out = load_text(p);
  for (const Diagnostic& d : p.found) out += line_text(d.problem);
  if (p.capacity.requests_per_s <= 0) return out;
  out += formatted("\n  %-10s %12s %12s %12s %12s %12s %9s %14s\n", "price", "training", "serving", "starts",
                   "preempted", "total", "servers", "1M requests");
  for (const CostOfClass& of : p.classes) {
    if (!of.cost) {
      const bool serves = of.inputs.serve_usd_per_hour <= 0;
      out += formatted("  %-10s no price of %s%s\n", name_of(of.price_class).c_str(),
                       (serves ? p.serve_target : p.target).c_str(),
                       of.price_class != CostClass::on_demand ? ""
                       : serves && !p.target.empty()          ? "; set serve.usd_per_chip_hour"
                                                              : "; set price.usd_per_chip_hour");
      continue;
    }
    const TotalCost& c = *of.cost;
    const auto usd = [](double v) { return to_text(Usd(v)); };
    out += formatted("  %-10s %12s %12s %12s %12s %12s %4d to %-3d %12s\n", name_of(of.price_class).c_str(),
                     usd(c.training).c_str(), usd(c.serving).c_str(), usd(c.starting).c_str(), usd(c.preempted).c_str(),
                     usd(c.total()).c_str(), c.first_servers, c.last_servers,
                     usd(c.requests > 0 ? c.total() / c.requests * 1e6 : 0).c_str());
  }
  if (!p.swings.empty()) out += formatted("\nwhat moves the total most, each input by %.0f %%:\n", 100 * p.variation);
  for (const Swing& s : p.swings)
    out += formatted("  %-22s %12s to %12s\n", s.input.c_str(), to_text(Usd(s.low_usd)).c_str(),
                     to_text(Usd(s.high_usd)).c_str());
  return out;
}

std::string break_even_text(const CostPlan& a, const CostPlan& b) {
  const std::array<CostBreakEven, 3> all = break_even(a, b);
  std::string out;
  for (const CostClass c : all_values<CostClass>()) {
    const CostOfClass &x = a.of(c), &y = b.of(c);
    if (!x.cost || !y.cost) continue;
    const bool first = x.cost->total() <= y.cost->total();
    const std::string &cheap = first ? a.serve_target : b.serve_target,
                      &other = first ? b.serve_target : a.serve_target;
    const double less = std::abs(x.cost->total() - y.cost->total());
    out +=
        (out.empty() ? "" : "\n") + name_of(c) + ": " + cheap + " costs " + to_text(Usd(less)) + " less than " + other;
    const CostBreakEven& even = all[static_cast<size_t>(c)];
    std::vector<std::string> same;
    if (even.requests_per_day)
      same.push_back("at " + counted(count_text(*even.requests_per_day), "request") + " a day");
    if (even.hours && *even.hours > 0) same.push_back("after " + number_text(*even.hours, 3) + " h of serving");
    out += same.empty() ? "; it is cheaper at any volume" : "; both cost the same " + joined(same, " and ");
  }
  return out;
}

namespace {

// USD per hour of all chips; 0 if there is no price. The virtual devices of this machine have a price only if the
// experiment sets one.
double hourly_price(const experiment::BoundExperiment& config, const PlanContext& context) {
  const hardware::Target target = context.catalogue.target(config.target.id);
  double each = config.price.usd_per_chip_hour;
  if (const auto* listed = context.catalogue.price(target.chip.id, config.price.region, config.price.price_class);
      each <= 0 && listed)
    each = listed->usd_per_chip_hour;
  int chips = target.chips();
  if (config.target.id == "cpu") {
    chips = 1;
    for (const mesh::MeshAxis& axis : config.mesh.axes) chips *= axis.size;
  }
  return each * chips;
}

}  // namespace

std::optional<RunCost> run_cost(const store::Store& store, const store::RunRow& run, const PlanContext& context) {
  double hourly = 0;
  try {
    hourly = hourly_price(store.experiment(run.id).valid_values(), context);
  } catch (const Error&) {  // a damaged document or a target that this machine does not know
  }
  if (hourly <= 0) return std::nullopt;
  const double seconds = run.method == "sweep" ? store.sum_of_points(run.id, "duration") : run.seconds;
  if (seconds <= 0) return std::nullopt;
  return RunCost{seconds / 3600 * hourly, run.source == "predicted"};
}

}  // namespace mw::plan
