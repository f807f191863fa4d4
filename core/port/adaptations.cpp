// SPDX-License-Identifier: Apache-2.0
#include "core/port/adaptations.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/lint/lora_modules.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/model/inventory.h"
#include "core/train/settings.h"

namespace mw::port {
namespace {

using experiment::Experiment;

struct Change {
  std::string key;
  Json value;  // null: the default
};
Experiment with(Experiment experiment, const std::vector<Change>& changes) {
  for (const auto& [key, value] : changes) value.is_null() ? experiment.erase(key) : experiment.set_value(key, value);
  return experiment;
}
Experiment with_mesh(Experiment experiment, const mesh::Mesh& mesh) {
  experiment.erase("mesh");
  for (const mesh::MeshAxis& axis : mesh.axes) experiment.set_value("mesh." + axis.name, axis.size);
  return experiment;
}

std::string target_of(const Experiment& experiment) {
  return experiment.value("target.id").get<std::string>();
}

std::int64_t trained_parameters(const options::Lora& lora, const plan::Request& request) {
  const model::TensorInventory inventory(request.model);
  if (request.method == model::TrainMethod::full) return inventory.parameters();
  const auto naming = request.stack == model::Stack::tunix ? lint::ModuleNaming::qwix : lint::ModuleNaming::peft;
  const std::string pattern = lora.module_path.empty()
                                  ? lint::lora_pattern(inventory, experiment::lora_targets(lora), naming)
                                  : lora.module_path;
  std::int64_t sum = 0;
  for (const lint::LoraModule& m : lint::matching_modules(lint::lora_modules(inventory, naming), pattern))
    sum += request.lora.rank * m.parameters_per_rank;
  return sum;
}

constexpr std::int64_t kRolloutBatch = 1;
// The figures of a whole inference pass where `rollout`; else of a training step.
enum class Figured { step, rollout };
VariantFigures figures(const Experiment& experiment, const plan::PlanContext& context, Figured figured) {
  VariantFigures out;
  try {
    plan::Request request = plan::plan_request(experiment, context);
    if (figured == Figured::rollout)
      request =
          plan::with_case(std::move(request), experiment.config().size, {options::Workload::rollout, kRolloutBatch});
    const plan::Plan plan = plan::predict(request);
    for (const Problem& p : plan.problems)
      if (p.severity == Severity::error && p.id != "MEMORY") return {.error = to_text(p), .peak = {}, .capacity = {}};
    out.fits = plan.fits();
    out.peak = plan.memory.at_peak.total();
    out.capacity = plan.memory.capacity;
    out.seconds = plan.step.seconds.value;
    out.usd_per_1000_steps = 1000 * out.seconds / 3600 * plan.run.usd_per_hour;
    if (figured == Figured::step) out.trained = trained_parameters(experiment.config().lora, request);
  } catch (const Error& error) {
    out.error = to_text(error.problem());
  }
  return out;
}

mesh::Mesh mesh_of(const Experiment& experiment, const plan::PlanContext& context) {
  return plan::planned_mesh(experiment, context);
}

struct Variant {
  std::string label;
  Experiment experiment;
};

class Writer {
 public:
  Writer(const PortedRecipe& recipe, const PortedToTpu& ported, const plan::PlanContext& context)
      : recipe_(recipe),
        gpu_(recipe.experiment),
        tpu_(ported.experiment),
        note_(ported.mesh_note),
        context_(context),
        gpu_mesh_(mesh_of(gpu_, context)),
        tpu_mesh_(mesh_of(tpu_, context)) {
    const experiment::BoundExperiment config = tpu_.valid_values();
    config_ = formats::model_config(config.model);
    targets_ = experiment::lora_targets(config.lora);
    diagnosis_ = plan::diagnostics(tpu_, context);
  }

  std::vector<Adaptation> all() { return {mesh(), lora_names(), sharding(), remat(), data_pipeline(), merging()}; }

 private:
  AdaptationEffect effect(const Variant& before, const Variant& after, Figured figured = Figured::step) const {
    return {target_of(after.experiment), before.label, after.label, figures(before.experiment, context_, figured),
            figures(after.experiment, context_, figured)};
  }
  // Returns the effect of replacing the changes `without` by `having`, on the GPU and on the TPU.
  std::vector<AdaptationEffect> on_both(const std::string& before, const std::vector<Change>& without,
                                        const std::string& after, const std::vector<Change>& having) const {
    return {effect({before, with(gpu_, without)}, {after, with(gpu_, having)}),
            effect({before, with(tpu_, without)}, {after, with(tpu_, having)})};
  }

  std::vector<GuardRule> rules(const std::vector<std::string>& ids) const {
    std::vector<GuardRule> out;
    for (const std::string& id : ids) {
      const lint::CheckRule* rule = lint::find_rule(id);
      GuardRule guard{id, rule ? std::string(rule->title) : ""};
      for (const plan::Diagnostic& d : diagnosis_.found)
        if (d.problem.id == id && guard.outcome != RuleOutcome::found) {
          guard.outcome = RuleOutcome::found;
          guard.message = d.problem.message + (d.problem.fix.empty() ? "" : ". Fix: " + d.problem.fix);
        }
      for (const lint::UncheckedRule& u : diagnosis_.unchecked)
        if (u.id == id && guard.outcome == RuleOutcome::passed) {
          guard.outcome = RuleOutcome::unchecked;
          guard.message = "needs " + u.needs;
        }
      out.push_back(std::move(guard));
    }
    return out;
  }

  Adaptation mesh() const {
    const int processes = recipe_.processes;
    std::string sizes, names;
    for (const mesh::MeshAxis& axis : tpu_mesh_.axes) {
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(axis.size);
      names += (names.empty() ? "\"" : ", \"") + axis.name + '"';
    }
    const mesh::Mesh copied{{{"fsdp", tpu_mesh_.devices()}, {"tp", 1}}};
    const Experiment literal = with_mesh(tpu_, copied);
    return {
        .id = "mesh",
        .title = "Mesh instead of processes",
        .before =
            "# Accelerate starts one process per GPU; the mesh is implied\ndistributed_type: FSDP\nnum_processes: " +
            std::to_string(processes) + "\n",
        .after = "# One program for all chips, with named axes\nmesh = jax.make_mesh((" + sizes + "), (" + names +
                 "),\n                     axis_types=(jax.sharding.AxisType.Auto,) * " +
                 std::to_string(tpu_mesh_.axes.size()) + ")\n",
        .reason =
            "FSDP gathers the weights of a layer on every GPU. On a TPU the chips form a torus, where splitting "
            "heads and the MLP over tp can move fewer bytes than gathering weights, and the program says which "
            "axis is which. " +
            note_,
        .effect_note = "",
        .effects = {effect({to_text(gpu_mesh_), gpu_}, {to_text(gpu_mesh_) + " (unchanged)", gpu_}),
                    effect({to_text(copied) + ", as on the GPUs", literal}, {to_text(tpu_mesh_), tpu_})},
        .rules = rules({"MESH-SIZE", "MESH-1", "TP-1", "TP-2", "FSDP-1", "BATCH-1"})};
  }

  std::string python_list() const {
    return "[" +
           joined(targets_, ", ", [](model::Role role) { return '"' + std::string(hf_module_name(role)) + '"'; }) + "]";
  }

  Adaptation lora_names() const {
    Adaptation a{.id = "lora",
                 .title = "Names of the LoRA modules",
                 .before = "",
                 .after = "",
                 .reason =
                     "PEFT compares the last part of a PyTorch module path with target_modules. Qwix matches "
                     "module_path with the whole path of a Flax module, where q, k and v are einsums: a PyTorch "
                     "name matches nothing, and the training then changes no weight.",
                 .effect_note = "",
                 .effects = {},
                 .rules = rules({"PEFT-1", "COV-1", "COV-2", "COV-3", "COV-4", "SCALE-1"})};
    const std::string alpha = tpu_.value("lora.alpha").dump(), rank = tpu_.value("lora.rank").dump();
    if (!recipe_.adapters) {
      a.before = "# The recipe trains every weight: no LoraConfig\n";
      a.after = "# train.method is full: no qwix.LoraProvider\n";
      a.effect_note = "The recipe has no adapters, so there is nothing to rename.";
      return a;
    }
    const std::string qwix = tpu_.value("lora.module_path").get<std::string>();
    a.before =
        "LoraConfig(r=" + rank + ", lora_alpha=" + alpha + ",\n           target_modules=" + python_list() + ")\n";
    a.after = "qwix.LoraProvider(module_path=r\"" + qwix + "\",\n                  rank=" + rank + ", alpha=" + alpha +
              ", dropout=" + tpu_.value("lora.dropout").dump() + ")\n";
    const std::string peft = lint::lora_pattern(model::TensorInventory(config_), targets_, lint::ModuleNaming::peft);
    a.effects = {effect({"PEFT's names", gpu_}, {"PEFT's names (unchanged)", gpu_}),
                 effect({"PEFT's names under Qwix", with(tpu_, {{"lora.module_path", peft}})}, {"Qwix's names", tpu_})};
    return a;
  }

  Adaptation sharding() const {
    return {.id = "sharding",
            .title = "Sharding annotations",
            .before =
                "# FSDP2 splits the first dimension of every tensor of a wrapped layer\nfsdp_config:\n"
                "  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
            .after =
                "# Every parameter has a spec; adapters get that of their base\n"
                "q_einsum: PartitionSpec(\"tp\", \"fsdp\", None)\n"
                "with mesh:\n    model = qwix.apply_lora_to_model(model, provider, **model.get_model_input())\n"
                "place = jax.sharding.NamedSharding(mesh, spec)  # and jax.device_put(value, place)\n",
            .reason =
                "XLA inserts the collectives that the annotations imply. A tensor without one is replicated: the "
                "program is right, but every chip holds all of it.",
            .effect_note = "",
            .effects = on_both("no annotation: every tensor replicated", {{"sharding.preset", "replicated"}},
                               "split by the rules of the software", {{"sharding.preset", nullptr}}),
            .rules = rules({"SHARD-1", "SHARD-2", "SHARD-3", "SHARD-4", "SPEC-AXIS", "SPEC-UNUSED"})};
  }

  Adaptation remat() const {
    const std::string chosen = tpu_.value("train.remat").get<std::string>();
    const std::string name = chosen == "layer" ? "DECODER" : chosen == "block" ? "BLOCK" : "NONE";
    return {.id = "remat",
            .title = "Rematerialization",
            .before = "SFTConfig(gradient_checkpointing=" + std::string(chosen == "none" ? "False" : "True") + ")\n",
            .after = "# After Qwix has applied the adapters, for each layer\nlayer.config.remat_config = RematConfig." +
                     name + "\n",
            .reason =
                "PyTorch wraps modules in checkpoints at run time. In JAX the policy is part of the compiled "
                "program, and Tunix reads it from the configuration of the layer; Qwix must see the model "
                "without it (REMAT-1).",
            .effect_note = "The recipe uses " + std::string(chosen == "none" ? "none." : "remat of whole layers."),
            .effects = on_both("remat none", {{"train.remat", "none"}}, "remat layer", {{"train.remat", "layer"}}),
            .rules = rules({"REMAT-1", "REMAT-2"})};
  }

  Adaptation data_pipeline() const {
    const std::string len = tpu_.value("data.max_len").dump();
    const bool known = tpu_.has("data.lengths") || tpu_.has("data.path") || tpu_.has("data.mean_len");
    const bool packed = tpu_.value("data.packing").get<bool>();
    return {.id = "data",
            .title = "Data pipeline with static shapes",
            .before =
                "# The collator pads a batch to its longest row; each process has its own sampler\n"
                "SFTConfig(max_length=" +
                len + ", packing=" + (packed ? "True" : "False") + ")\n",
            .after = "# Every batch has one shape: rows of " + len +
                     " tokens, with positions and segments\n"
                     "spec = jax.sharding.PartitionSpec(\"fsdp\")\n"
                     "batch = jax.make_array_from_callback(shape, jax.sharding.NamedSharding(mesh, spec), rows)\n",
            .reason =
                "XLA compiles one program per shape. Rows are padded to data.max_len or packed, and the loss "
                "mask, positions and segments are arrays of the batch. All logits exist at once unless the loss "
                "is computed in parts.",
            .effect_note = packed  ? "The recipe packs rows, so padding is small on both sides."
                           : known ? ""
                                   : "The lengths of the rows are not known, so every row counts as " + len +
                                         " tokens and padding makes no difference yet: set data.path or data.lengths.",
            .effects = on_both("padded to the longest row of a batch", {{"data.padding", "longest"}},
                               "padded to data.max_len", {{"data.padding", "max_len"}}),
            .rules = rules({"PAD-1", "LOGITS-1", "TOK-1", "TOK-2", "TOK-3"})};
  }

  Adaptation merging() const {
    Adaptation a{.id = "merge",
                 .title = "Merging of checkpoints",
                 .before = "",
                 .after = "",
                 .reason =
                     "PEFT saves adapter_model.safetensors, and merge_and_unload() needs the whole model in "
                     "memory. Tunix saves Orbax checkpoints without rank and alpha; the merge has to map names "
                     "and transposed shapes back to those of Hugging Face.",
                 .effect_note = "",
                 .effects = {},
                 .rules = rules({"EXP-1", "EXP-2", "EXP-3", "EXP-4", "PEFT-2", "PEFT-3"})};
    if (!recipe_.adapters) {
      a.before = "trainer.save_model(out)\n";
      a.after = "# Orbax checkpoint of all weights, written as Hugging Face safetensors\n";
      a.effect_note = "The recipe has no adapters: the checkpoint is the model.";
      return a;
    }
    a.before = "model = PeftModel.from_pretrained(base, adapter).merge_and_unload()\nmodel.save_pretrained(out)\n";
    a.after = "meshwright merge --base BASE --adapter CHECKPOINT --out OUT\n";
    const auto rollout = [&](const Experiment& e) {
      const Variant merged{"merged weights", with(e, {{"kind", "size"}, {"size.adapters", false}})},
          adapter{"adapter beside the weights", with(e, {{"kind", "size"}, {"size.adapters", true}})};
      return effect(adapter, merged, Figured::rollout);
    };
    a.effects = {rollout(gpu_), rollout(tpu_)};
    a.effect_note = "Training does not change. The figures are of one rollout of " +
                    gpu_.value("size.prompt_len").dump() + " prompt and " + gpu_.value("size.new_tokens").dump() +
                    " new tokens, with the adapter and merged.";
    return a;
  }

  const PortedRecipe& recipe_;
  const Experiment& gpu_;
  const Experiment& tpu_;
  const std::string& note_;
  const plan::PlanContext& context_;
  mesh::Mesh gpu_mesh_, tpu_mesh_;
  model::Config config_;
  std::vector<model::Role> targets_;
  plan::Diagnosis diagnosis_;
};

// The smallest v5p slice with at least as many chips.
std::string default_tpu(int chips, const plan::PlanContext& context) {
  const hardware::Slice* best = nullptr;
  std::string id;
  for (const hardware::SliceFamily& family : context.catalogue.slices())
    for (const hardware::Slice& slice : family.slices) {
      const int n = hardware::chip_count(slice.shape);
      if (family.chip != "v5p" || n < chips || (best && hardware::chip_count(best->shape) <= n)) continue;
      best = &slice;
      id = family.prefixes.front() + std::to_string(slice.suffix);
    }
  if (!best)
    throw Error("TARGET", "no v5p slice has as many chips as the recipe has GPUs",
                {.place = "--tpu", .found = std::to_string(chips), .fix = "choose a TPU target with --tpu"});
  return id;
}

constexpr std::int64_t kMostRows = 65536;  // of train.batch and train.accumulation

struct Shape {
  mesh::Mesh mesh;
  std::int64_t batch = 1;
  VariantFigures figures;
};

// Better: fits, then the shorter step.
bool is_better(const Shape& a, const Shape& b) {
  if (a.figures.fits != b.figures.fits) return a.figures.fits;
  if (!a.figures.fits) return a.figures.peak < b.figures.peak;
  return a.figures.seconds < b.figures.seconds;
}

Experiment shaped(const Experiment& experiment, const Shape& shape, std::int64_t rows) {
  return with(with_mesh(experiment, shape.mesh),
              {{"train.batch", shape.batch}, {"train.accumulation", rows / shape.batch}});
}

}  // namespace

PortedToTpu ported_to_tpu(const PortedRecipe& recipe, const std::string& tpu, const plan::PlanContext& context) {
  const std::string id = tpu.empty() ? default_tpu(recipe.processes, context) : tpu;
  const hardware::Target target = context.catalogue.target(id);
  if (target.chip.vendor != hardware::Vendor::tpu)
    throw Error("PORT", "Tunix trains on TPUs", {.place = "--tpu", .found = id, .expected = "a TPU slice, e.g. v5p-8"});
  Experiment next = recipe.experiment;
  plan::retarget(next, id, context);
  next.erase("mesh");
  next.set_value("train.stack", "tunix");
  next.set_value("train.loss_chunk", 0);  // Tunix computes all logits of a micro-batch
  next.erase("train.attention");
  const experiment::BoundExperiment config = next.config();
  if (recipe.adapters) {
    const model::TensorInventory inventory(formats::model_config(config.model));
    next.set_value("lora.module_path",
                   lint::lora_pattern(inventory, experiment::lora_targets(config.lora), lint::ModuleNaming::qwix));
    next.set_value("export.merge", "meshwright");
  }
  const std::int64_t rows = std::int64_t{config.train.batch} * config.train.accumulation;
  std::optional<Shape> best;
  for (const mesh::Mesh& mesh : mesh::factorisations({"fsdp", "tp"}, target.devices()))
    for (std::int64_t batch = std::min(rows, kMostRows); batch >= 1; --batch) {
      if (rows % batch != 0 || rows / batch > kMostRows || batch % mesh.size("fsdp") != 0) continue;
      Shape shape{mesh, batch, {}};
      shape.figures = figures(shaped(next, shape, rows), context, Figured::step);
      if (!shape.figures.error && (!best || is_better(shape, *best))) best = shape;
    }
  if (!best) {  // no mesh divides rows and model; the checker names what to change
    plan::plan_request(next, context);
    return {std::move(next), "No mesh of fsdp and tp divides the rows of a step and the model."};
  }
  const std::string note = best->figures.fits ? "The mesh has the shortest predicted step among those that fit."
                                              : "No mesh fits; this one needs the least memory.";
  return {shaped(next, *best, rows), note};
}

std::vector<Adaptation> adaptations(const PortedRecipe& recipe, const PortedToTpu& ported,
                                    const plan::PlanContext& context) {
  return Writer(recipe, ported, context).all();
}

}  // namespace mw::port
