// SPDX-License-Identifier: Apache-2.0
#include "core/views/choices.h"

#include "core/formats/huggingface/hf_weights.h"
#include "core/model/catalogue.h"
#include "core/model/inventory.h"
#include "core/plan/document/plan_request.h"

namespace mw::views {

std::vector<TargetChoice> target_choices(const plan::PlanContext& context) {
  std::vector<TargetChoice> out;
  for (const std::string& id : context.catalogue.target_ids()) {
    const hardware::Target target = context.catalogue.target(id);
    TargetChoice choice{.id = id,
                        .chip = target.chip.name,
                        .chips = target.chips(),
                        .devices = target.devices(),
                        .memory = Bytes(static_cast<std::int64_t>(target.chip.memory.value)),
                        .usd_per_hour = {}};
    if (const hardware::Price* price = context.catalogue.price(target.chip.id))
      choice.usd_per_hour = price->usd_per_chip_hour * choice.chips;
    out.push_back(std::move(choice));
  }
  return out;
}

std::vector<ModelChoice> model_choices() {
  std::vector<ModelChoice> out;
  for (const std::string& id : model::catalogue_ids()) {
    const model::Config config = model::catalogue_config(id);
    out.push_back({.id = id,
                   .family = id.substr(0, id.find('-')),
                   .parameters = model::TensorInventory(config).parameters(),
                   .planning_only = model::is_planning_only(config)});
  }
  return out;
}

void predict_fit(ModelChoice& choice, experiment::Experiment experiment, const plan::PlanContext& context) {
  experiment.erase("model.path");
  experiment.set_value("model.id", choice.id);
  try {
    const plan::Plan plan = plan::predict(plan::plan_request(experiment, context));
    choice.fits = plan.fits();
    choice.memory = plan.memory.at_peak.total();
  } catch (const Error& error) {
    choice.reason = error.problem().message;
  }
}

namespace {

experiment::Experiment serving_here(const importing::FoundModel& model, const experiment::Experiment& experiment) {
  experiment::Experiment out;
  const bool here = experiment.valid_values().target.id == "cpu";
  if (here)
    for (const char* key : {"target.threads", "target.memory_gib"}) out.set_value(key, experiment.value(key));
  const std::string stored = model.dtype.substr(0, model.dtype.find(','));
  if (here && experiment.has("train.dtype"))
    out.set_value("train.dtype", experiment.value("train.dtype"));
  else if (parse<model::WeightType>(stored))
    out.set_value("train.dtype", stored);
  out.set_value("kind", "serve");
  out.set_value("target.id", "cpu");
  out.set_value("model.path", model.folder.string());
  const int context = formats::read_config(model.folder).max_positions;
  const int tokens = context > 0 ? std::min(kHereTokens, context) : kHereTokens;
  const int prompt = tokens * kHerePrompt / kHereTokens;
  out.set_value("serve.max_num_seqs", 1);
  out.set_value("serve.max_model_len", tokens);
  out.set_value("serve.max_num_batched_tokens", tokens);
  out.set_value("serve.input_len", prompt);
  out.set_value("serve.output_len", tokens - prompt);
  return out;
}

plan::Estimate reciprocal(const plan::Estimate& seconds) {
  plan::Estimate rate = seconds;
  rate.value = 1 / seconds.value;
  rate.low = 1 / seconds.high;
  rate.high = 1 / seconds.low;
  return rate;
}

}  // namespace

FoundChoice predict_here(importing::FoundModel model, const experiment::Experiment& experiment,
                         const plan::PlanContext& context) {
  FoundChoice choice{.model = std::move(model)};
  if (choice.model.kind != importing::ModelKind::model) {
    choice.reason = choice.model.kind == importing::ModelKind::adapter ? "an adapter runs on its base model"
                                                                       : "merge or convert an Orbax checkpoint first";
    return choice;
  }
  if (!choice.model.runs_in_engine) {
    choice.reason = "the engine does not run models of type " + choice.model.family;
    return choice;
  }
  try {
    const experiment::Experiment served = serving_here(choice.model, experiment);
    const plan::Request request = plan::plan_request(served, context);
    const plan::Plan plan = plan::predict(request);
    choice.weights = to_string(request.weights);
    choice.fits = plan.memory.fits();
    choice.memory = plan.memory.at_peak.total();
    if (plan.serve && plan.serve->decode_step.value > 0)
      choice.tokens_per_second =
          reciprocal(plan.serve->decode_step) * (plan.run.tokens_per_second * plan.serve->decode_step.value);
  } catch (const Error& error) {
    if (error.problem().id == "SERVE") choice.fits = false;  // weights and one request exceed the memory
    choice.reason = error.problem().message;
  }
  return choice;
}

Json to_json(const FoundChoice& choice) {
  const importing::FoundModel& model = choice.model;
  Json out{{"path", model.folder.string()},  {"place", to_string(model.place)},
           {"kind", to_string(model.kind)},  {"name", model.name},
           {"family", model.family},         {"dtype", model.dtype},
           {"parameters", model.parameters}, {"bytes", model.bytes},
           {"predicted", nullptr},           {"reason", choice.reason}};
  if (!choice.fits) return out;
  Json& predicted = out["predicted"] =
      Json{{"fits", *choice.fits}, {"peak_bytes", nullptr}, {"tokens_per_second", nullptr}};
  if (choice.memory.value > 0) predicted["peak_bytes"] = choice.memory.value;
  if (!choice.weights.empty()) predicted["dtype"] = choice.weights;
  if (const auto& rate = choice.tokens_per_second) {
    predicted["tokens_per_second"] = rate->value;
    predicted["tokens_per_second_low"] = rate->low;
    predicted["tokens_per_second_high"] = rate->high;
  }
  return out;
}

}  // namespace mw::views
