// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/onednn_gemm.h"

#if defined(__x86_64__)
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "core/base/buffer_sizes.h"

extern "C" void omp_set_num_threads(int);  // of the OpenMP that oneDNN uses

namespace mw::engine {
namespace {

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

}  // namespace

class PanelProduct {
 public:
  explicit PanelProduct(const PanelShape& shape) : stream_(cpu_engine()) {
    using dnnl::memory;
    const std::int64_t rows = kAmxRows[shape.rows], columns = kAmxPanels[shape.panels] * sizes::kPanelRows;
    const memory::desc a({rows, shape.depth}, memory::data_type::bf16, memory::format_tag::ab);
    const memory::desc b({shape.depth, columns}, memory::data_type::bf16, memory::format_tag::BA16a32b2a);
    const memory::desc c({rows, columns}, memory::data_type::f32, memory::format_tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes, cpu_engine());
    const std::size_t scratch = description.scratchpad_desc().get_size();
    if (scratch > kOnednnScratchBytes) own_scratch_.resize((scratch + sizeof(Line) - 1) / sizeof(Line));
    fits_ = own_scratch_.empty() && std::string_view(description.impl_info_str()).find("amx") != std::string_view::npos;
    product_ = dnnl::matmul(description);
    const memory::desc descriptions[] = {a, b, c, description.scratchpad_desc()};
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = memory(descriptions[i], cpu_engine(), nullptr);
  }

  // Whether oneDNN has AMX code for the shape that does not split the depth, which would need room for sums.
  bool fits() const { return fits_; }

  void run(const PanelOperands& operands) {
    void* const at[] = {const_cast<std::uint16_t*>(operands.a), const_cast<std::uint16_t*>(operands.panels),
                        operands.tile, own_scratch_.empty() ? operands.scratch : own_scratch_.data()};
    for (size_t i = 0; i < memory_.size(); ++i)
      if (at_[i] != at[i]) memory_[i].set_data_handle(at_[i] = at[i]);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memory_[0].get()},
                                         {DNNL_ARG_WEIGHTS, memory_[1].get()},
                                         {DNNL_ARG_DST, memory_[2].get()},
                                         {DNNL_ARG_SCRATCHPAD, memory_[3].get()}};
    dnnl::error::wrap_c_api(dnnl_primitive_execute(product_.get(), stream_.get(), 4, arguments),
                            "oneDNN could not multiply panels");
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul product_;
  bool fits_ = false;
  std::array<dnnl::memory, 4> memory_;
  std::array<void*, 4> at_{};
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> own_scratch_;  // if oneDNN splits the depth, as it may on processors with other caches
};

namespace {

// Debian's oneDNN would start threads of its own.
void compute_alone() {
  thread_local const bool once = (omp_set_num_threads(1), true);
  (void)once;
}

bool detect_amx() {
  if (dnnl::get_effective_cpu_isa() < dnnl::cpu_isa::avx512_core_amx) return false;
  compute_alone();
  return PanelProduct({0, 0, kAmxMostDepth}).fits();
}

}  // namespace

bool has_onednn_amx() {
  static const bool has = detect_amx();
  return has;
}

PanelProduct& panel_product(const PanelShape& shape) {
  constexpr size_t kShapes = std::size(kAmxRows) * std::size(kAmxPanels);
  thread_local std::map<std::int64_t, std::array<std::unique_ptr<PanelProduct>, kShapes>> products;
  const size_t i = static_cast<size_t>(shape.rows) * std::size(kAmxPanels) + static_cast<size_t>(shape.panels);
  std::unique_ptr<PanelProduct>& product = products[shape.depth][i];
  if (!product) {
    compute_alone();
    product = std::make_unique<PanelProduct>(shape);
  }
  return *product;
}

void run(PanelProduct& product, const PanelOperands& operands) {
  product.run(operands);
}

}  // namespace mw::engine
#endif
