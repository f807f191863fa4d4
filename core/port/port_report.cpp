// SPDX-License-Identifier: Apache-2.0
#include "core/port/port_report.h"

#include "core/base/counted.h"
#include "core/base/text.h"

namespace mw::port {
namespace {

using formats::ConfigSetting;

Json place_json(const ConfigSetting& s) {
  Json place{{"setting", setting_name(s)}, {"text", s.text}, {"file", s.place.file}, {"line", s.place.line}};
  if (s.place.cell > 0) place["cell"] = s.place.cell;
  return place;
}

Json figures_json(const VariantFigures& f) {
  if (f.error) return {{"error", *f.error}};
  Json out{{"fits", f.fits},
           {"peak_bytes", f.peak.value},
           {"capacity_bytes", f.capacity.value},
           {"seconds", f.seconds},
           {"usd_per_1000", f.usd_per_1000_steps}};
  if (f.trained > 0) out["trained_parameters"] = f.trained;
  return out;
}

Json adaptation_json(const Adaptation& a) {
  Json effects = Json::array(), rules = Json::array();
  for (const AdaptationEffect& e : a.effects)
    effects.push_back({{"target", e.target},
                       {"before", {{"label", e.before_label}, {"predicted", figures_json(e.before)}}},
                       {"after", {{"label", e.after_label}, {"predicted", figures_json(e.after)}}}});
  for (const GuardRule& r : a.rules)
    rules.push_back({{"id", r.id}, {"title", r.title}, {"outcome", to_string(r.outcome)}, {"message", r.message}});
  return {{"id", a.id},         {"title", a.title},      {"before", a.before}, {"after", a.after},
          {"reason", a.reason}, {"note", a.effect_note}, {"effects", effects}, {"rules", rules}};
}

// A cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out;
}
std::string code_cell(const std::string& text) {
  std::string plain = cell(text);
  std::erase(plain, '`');
  return plain.empty() ? "" : "`" + plain + "`";
}

void add_recipe_tables(const PortedRecipe& recipe, std::string& out) {
  out +=
      "## Mapped settings\n\n| Setting | Value | Key | Value of the experiment | Place | Note "
      "|\n|---|---|---|---|---|---|\n";
  for (const MappedSetting& m : recipe.mapped)
    out += "| " + code_cell(setting_name(m.from)) + " | " + code_cell(m.from.text) + " | `" + m.key + "` | " +
           code_cell(value_text(m.value)) + " | " + cell(to_text(m.from.place)) + " | " + cell(m.note) + " |\n";
  out +=
      "\n## Assumed\n\nThe files leave these to a library or to the user.\n\n| Key | Value | Reason |\n|---|---|---|\n";
  for (const AssumedSetting& a : recipe.assumed)
    out += "| `" + a.key + "` | " + code_cell(value_text(a.value)) + " | " + cell(a.reason) + " |\n";
  out +=
      "\n## Not read\n\nThese are computed when the recipe runs. They are not guessed.\n\n"
      "| Setting | Expression | Place | Reason |\n|---|---|---|---|\n";
  for (const ConfigSetting& s : recipe.not_read)
    out += "| " + code_cell(setting_name(s)) + " | " + code_cell(s.text) + " | " + cell(to_text(s.place)) + " | " +
           cell(s.reason) + " |\n";
  out += "\n## Without counterpart\n\n| Setting | Value | Place | Reason |\n|---|---|---|---|\n";
  for (const UnmatchedSetting& u : recipe.without_counterpart)
    out += "| " + code_cell(setting_name(u.from)) + " | " + code_cell(u.from.text) + " | " +
           cell(to_text(u.from.place)) + " | " + cell(u.reason) + " |\n";
}

std::string effect_lines(const Adaptation& a, const std::string& indent) {
  std::string out;
  for (const AdaptationEffect& e : a.effects) {
    out += indent + e.target + ", " + e.before_label + ": " + figures_text(e.before) + "\n";
    if (e.before_label != e.after_label && !(e.before == e.after && e.after_label.ends_with("(unchanged)")))
      out += indent + e.target + ", " + e.after_label + ": " + figures_text(e.after) + "\n";
  }
  return out;
}

}  // namespace

PortReport port_recipe(const PortRequest& request, const plan::PlanContext& context) {
  PortReport report{read_recipe(request.files, request.gpu, context), {}, {}, {}};
  try {
    report.tpu = ported_to_tpu(report.recipe, request.tpu, context);
    report.adaptations = adaptations(report.recipe, *report.tpu, context);
  } catch (const Error& error) {
    const bool about_options = error.problem().place == "--tpu" || error.problem().id.starts_with("TARGET");
    if (about_options || error.kind() == Error::Kind::cancelled) throw;
    report.no_plan = error.problem();
  }
  return report;
}

std::string setting_name(const ConfigSetting& s) {
  return s.section.empty() ? s.name : s.section + (s.name.starts_with('#') ? " " : ".") + s.name;
}

std::string figures_text(const VariantFigures& f) {
  if (f.error) return "no plan: " + *f.error;
  std::string out = to_text(f.peak) + " of " + to_text(f.capacity) + (f.fits ? "" : " (does not fit)") + ", " +
                    to_text(Seconds(f.seconds));
  if (f.usd_per_1000_steps > 0) out += ", " + to_text(Usd(f.usd_per_1000_steps)) + " per 1,000";
  if (f.trained > 0) out += ", trains " + counted(count_text(static_cast<double>(f.trained)), "parameter");
  return out;
}

std::string report_text(const PortReport& report) {
  const PortedRecipe& recipe = report.recipe;
  std::string out = counted(recipe.mapped.size(), "setting") + " mapped\n";
  for (const MappedSetting& m : recipe.mapped)
    out += "  " + setting_name(m.from) + " = " + m.from.text + "  ->  " + m.key + " = " + value_text(m.value) + "  (" +
           to_text(m.from.place) + (m.note.empty() ? "" : "; " + m.note) + ")\n";
  out += counted(recipe.assumed.size(), "value") + " assumed\n";
  for (const AssumedSetting& a : recipe.assumed)
    out += "  " + a.key + " = " + value_text(a.value) + "  (" + a.reason + ")\n";
  out += counted(recipe.not_read.size(), "expression") + " not read\n";
  for (const ConfigSetting& s : recipe.not_read)
    out += "  " + setting_name(s) + " = " + s.text + "  (" + to_text(s.place) + ": " + s.reason + ")\n";
  out += counted(recipe.without_counterpart.size(), "setting") + " without counterpart\n";
  for (const UnmatchedSetting& u : recipe.without_counterpart)
    out += "  " + setting_name(u.from) + " = " + u.from.text + "  (" + to_text(u.from.place) + ": " + u.reason + ")\n";
  if (report.no_plan) return out + "no adaptations: " + to_text(*report.no_plan) + "\n";
  out += "adaptations to JAX with Tunix and Qwix (figures are predicted)\n";
  int number = 0;
  for (const Adaptation& a : report.adaptations) {
    out += std::to_string(++number) + ". " + a.title + "\n" + effect_lines(a, "   ");
    if (!a.effect_note.empty()) out += "   " + a.effect_note + "\n";
    out +=
        "   guarded by " +
        joined(a.rules, ", ",
               [](const GuardRule& r) {
                 return r.id + (r.outcome == RuleOutcome::passed ? "" : " (" + std::string(to_string(r.outcome)) + ")");
               }) +
        "\n";
  }
  return out;
}

Json report_json(const PortReport& report) {
  const PortedRecipe& recipe = report.recipe;
  Json mapped = Json::array(), missing = Json::array(), unread = Json::array(), assumed = Json::array(),
       steps = Json::array();
  for (const MappedSetting& m : recipe.mapped) {
    Json row = place_json(m.from);
    row.update(Json{{"key", m.key}, {"value", m.value}, {"note", m.note}});
    mapped.push_back(std::move(row));
  }
  for (const UnmatchedSetting& u : recipe.without_counterpart) {
    Json row = place_json(u.from);
    row["reason"] = u.reason;
    missing.push_back(std::move(row));
  }
  for (const ConfigSetting& s : recipe.not_read) {
    Json row = place_json(s);
    row["reason"] = s.reason;
    unread.push_back(std::move(row));
  }
  for (const AssumedSetting& a : recipe.assumed)
    assumed.push_back({{"key", a.key}, {"value", a.value}, {"reason", a.reason}});
  for (const Adaptation& a : report.adaptations) steps.push_back(adaptation_json(a));
  Json out{{"files", recipe.files},
           {"experiment", recipe.experiment.json()},
           {"processes", recipe.processes},
           {"mapped", mapped},
           {"assumed", assumed},
           {"not_read", unread},
           {"without_counterpart", missing},
           {"ported", report.tpu ? report.tpu->experiment.json() : Json()},
           {"adaptations", steps}};
  if (report.no_plan) out["no_adaptations"] = to_text(*report.no_plan);
  return out;
}

std::string report_document(const PortReport& report) {
  const PortedRecipe& recipe = report.recipe;
  std::string out = "# Port of " + joined(recipe.files) +
                    " to JAX with Tunix and Qwix\n\nWritten by Meshwright. No code of the recipe was executed.\n\n";
  add_recipe_tables(recipe, out);
  out += "\n## The six adaptations\n\n";
  if (report.no_plan) return out + "There are no figures: " + to_text(*report.no_plan) + "\n";
  out +=
      "Memory is the peak of a device, time an optimizer step, cost in USD per 1,000 steps. All figures are "
      "predicted.\n";
  int number = 0;
  for (const Adaptation& a : report.adaptations) {
    out += "\n### " + std::to_string(++number) + ". " + a.title + "\n\n" + a.reason + "\n\nBefore:\n\n```\n" +
           a.before + "```\n\nAfter:\n\n```\n" + a.after + "```\n\n";
    if (!a.effects.empty()) {
      out += "| Target | Variant | Predicted |\n|---|---|---|\n";
      for (const AdaptationEffect& e : a.effects) {
        out += "| " + e.target + " | " + cell(e.before_label) + " | " + cell(figures_text(e.before)) + " |\n";
        out += "| " + e.target + " | " + cell(e.after_label) + " | " + cell(figures_text(e.after)) + " |\n";
      }
      out += "\n";
    }
    if (!a.effect_note.empty()) out += a.effect_note + "\n\n";
    out += "| Rule | Mistake that it finds | On the ported experiment |\n|---|---|---|\n";
    for (const GuardRule& r : a.rules)
      out += "| " + r.id + " | " + cell(r.title) + " | " + std::string(to_string(r.outcome)) +
             (r.message.empty() ? "" : ": " + cell(r.message)) + " |\n";
  }
  if (report.tpu) out += "\n## The ported experiment\n\n```json\n" + report.tpu->experiment.text() + "```\n";
  return out;
}

std::string trl_text(const TrlSettings& settings) {
  std::string out = settings.script + "\n" + settings.accelerate;
  out += counted(settings.without_counterpart.size(), "key") + " without counterpart\n";
  for (const UnmatchedKey& k : settings.without_counterpart)
    out += "  " + k.key + " = " + value_text(k.value) + "  (" + k.reason + ")\n";
  return out;
}

Json trl_json(const TrlSettings& settings) {
  Json rows = Json::array(), missing = Json::array();
  for (const TrlSetting& s : settings.settings)
    rows.push_back({{"call", s.call}, {"name", s.name}, {"value", s.value}, {"key", s.key}});
  for (const UnmatchedKey& k : settings.without_counterpart)
    missing.push_back({{"key", k.key}, {"value", k.value}, {"reason", k.reason}});
  return {{"settings", rows},
          {"without_counterpart", missing},
          {"script", settings.script},
          {"accelerate", settings.accelerate}};
}

std::string trl_document(const TrlSettings& settings) {
  std::string out = "# Settings for TRL, PEFT and Accelerate\n\nWritten by Meshwright.\n\n```python\n" +
                    settings.script + "```\n\n```yaml\n" + settings.accelerate +
                    "```\n\n## Without counterpart\n\n"
                    "| Key | Value | Reason |\n|---|---|---|\n";
  for (const UnmatchedKey& k : settings.without_counterpart)
    out += "| `" + k.key + "` | " + code_cell(value_text(k.value)) + " | " + cell(k.reason) + " |\n";
  return out;
}

}  // namespace mw::port
