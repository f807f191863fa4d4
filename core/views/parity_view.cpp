// SPDX-License-Identifier: Apache-2.0
#include "core/views/parity_view.h"

#include <algorithm>

namespace mw::views {
namespace {

std::string line_name(train::ParityForm form) {
  return form == train::ParityForm::folded   ? "Merged weights"
         : form == train::ParityForm::reread ? "Read again"
                                             : "Served";
}

// What became of the greedy text, or why the form did not run.
std::string row_text(const train::FormParity& form) {
  if (!form.reason.empty()) return form.reason;
  if (form.texts.empty()) return form.tolerance_reason;
  const auto equal = std::count_if(form.texts.begin(), form.texts.end(),
                                   [](const train::GreedyText& t) { return !t.first_difference; });
  std::string text =
      "greedy text equal for " + std::to_string(equal) + " of " + std::to_string(form.texts.size()) + " prompts";
  for (const train::GreedyText& t : form.texts)
    if (t.first_difference)
      text += "; prompt " + std::to_string(t.prompt + 1) + " from token " + std::to_string(*t.first_difference + 1);
  return text;
}

}  // namespace

ParityView parity_view(const train::Parity& parity) {
  ParityView view;
  for (const train::FormParity& form : parity.forms) {
    auto largest = std::make_shared<Series>(), layers = std::make_shared<Series>();
    for (size_t i = 0; i < form.positions.size(); ++i)
      largest->append(static_cast<double>(i + 1), form.positions[i].largest);
    for (const train::LayerDivergence& layer : form.layers) layers->append(layer.layer, layer.relative);
    view.positions = std::max(view.positions, static_cast<double>(form.positions.size()));
    if (!form.layers.empty()) view.layers = std::max(view.layers, static_cast<double>(form.layers.back().layer));
    view.rows.push_back({line_name(form.form), std::string(to_string(form.verdict)), row_text(form), form.largest,
                         form.mean, form.rms, form.allowed, std::string(to_string(form.measure))});
    view.lines.push_back({line_name(form.form), std::move(largest), std::move(layers)});
  }
  return view;
}

}  // namespace mw::views
