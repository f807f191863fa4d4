// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/indivisible.h"

#include <algorithm>

namespace mw::mesh {
namespace {

using model::Axis;

std::string_view noun(Axis axis) {
  static constexpr std::string_view kNouns[] = {"rows of the vocabulary",
                                                "values of the model's width",
                                                "query heads",
                                                "KV heads",
                                                "values of a head",
                                                "columns of the MLP",
                                                "values",
                                                "ranks of the adapter",
                                                "experts",
                                                "values of the per-layer embedding",
                                                "values"};
  return kNouns[static_cast<size_t>(axis)];
}

std::string layers_text(const std::set<int>& layers) {
  if (layers.empty() || *layers.begin() < 0) return "";
  std::string text = layers.size() == 1 ? " in layer " : " in layers ";
  int shown = 0;
  for (const int layer : layers) {
    if (shown == 3 && layers.size() > 4) {
      text += ", ... " + std::to_string(*layers.rbegin());
      break;
    }
    text += (shown++ ? ", " : "") + std::to_string(layer);
  }
  return layers.size() > 4 ? text + ", " + std::to_string(layers.size()) + " layers" : text;
}

std::string join(const std::set<std::string>& names) {
  std::string text;
  size_t i = 0;
  for (const std::string& name : names) text += (i++ == 0 ? "" : i == names.size() ? " and " : ", ") + name;
  return text;
}

std::string legal_text(const Placement& placement, const Mesh& mesh, const std::string& axis) {
  std::string text;
  const int now = mesh.size(axis);
  const std::vector<int> legal = legal_sizes(placement, mesh, axis, std::clamp(now, 32, 1 << 14) * 2);
  for (const int n : legal) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return text;
}

}  // namespace

std::string_view axis_key(Axis axis) {
  static constexpr std::string_view kKeys[] = {"vocab", "embed", "heads",   "kv_heads", "head_dim", "mlp",
                                               "one",   "rank",  "experts", "ple",      "one"};
  return kKeys[static_cast<size_t>(axis)];
}

void IndivisibleDimensions::add(const PlacedTensor& tensor, size_t dimension) {
  Where& where = found_[{tensor.spec.dims[dimension], tensor.dims[dimension].axis, tensor.dims[dimension].size}];
  if (model::is_adapter(tensor.role) && !where.kinds.empty()) return;  // its base was reported with the same cause
  if (where.first.empty()) where.first = tensor.name;
  // "layers.12.k_proj": k_proj
  where.kinds.insert(tensor.layer < 0 ? tensor.name : tensor.name.substr(tensor.name.find('.', 7) + 1));
  where.layers.insert(tensor.layer);
}

std::vector<Problem> IndivisibleDimensions::problems(const Placement& placement, const Mesh& mesh) const {
  std::vector<Problem> list;
  for (const auto& [cause, where] : found_) list.push_back(problem_of(cause, where, placement, mesh));
  return list;
}

Problem IndivisibleDimensions::problem_of(const Cause& cause, const Where& what, const Placement& placement,
                                          const Mesh& mesh) {
  const auto& [axes, dim, size] = cause;
  std::string product, id = "SPEC-DIVIDES";
  for (const std::string& axis : axes)
    if (mesh.size(axis) > 1) product += (product.empty() ? "" : " x ") + axis + " " + std::to_string(mesh.size(axis));
  // The axis to change: the first of more than one device.
  const std::string axis =
      *std::find_if(axes.begin(), axes.end(), [&](const std::string& a) { return mesh.size(a) > 1; });
  if (axes.size() == 1 && axis == "tp") id = "TP-1";
  if (axes.size() == 1 && axis == "fsdp") id = "FSDP-1";
  const std::vector<int> legal = legal_sizes(placement, mesh, axis, mesh.size(axis));
  return {.id = id,
          .message = std::to_string(size) + " " + std::string(noun(dim)) + " cannot be split over " + product + " (" +
                     join(what.kinds) + layers_text(what.layers) + ")",
          .place = "tensor " + what.first + ", dimension " + std::string(axis_key(dim)),
          .found = product,
          .expected = "for every tensor, " + axis + " one of " + legal_text(placement, mesh, axis),
          .fix = legal.empty() ? "choose another spec" : "set mesh." + axis + " = " + std::to_string(legal.back())};
}

}  // namespace mw::mesh
