// SPDX-License-Identifier: Apache-2.0
// The part of DoRA (arXiv 2402.09353) that LoRA does not have, as PEFT computes it: a projection's output, with its
// LoRA branch, is multiplied by m / |W + scaling B A|, output by output. The norm of a row counts as a constant in
// gradients. All functions take adapters with magnitudes.
#pragma once
#include <span>

#include "core/engine/runtime/device.h"
#include "core/engine/transformer/lora.h"
#include "core/engine/transformer/weight.h"

namespace mw::engine {

// Writes a.norm, in the order of the rows whatever the number of threads.
void update_row_norms(Device& device, const Weight& w, const Adapter& a);
// The same in two steps, for a device that has some columns of the rows: writes the squares of these to a.norm, then
// makes norms of the sums over the devices.
void write_row_squares(Device& device, const Weight& w, const Adapter& a);
void take_square_roots(const Adapter& a);
// |W| of one row of W, as update_row_norms() computes it while B is zero.
float initial_magnitude(std::span<const float> row);

struct OutputRows {  // [rows, out]
  std::int64_t rows = 0;
  const float* x = nullptr;
  float* y = nullptr;  // may be x
};
// y = x * m / norm, in columns [begin, end). On the calling thread.
void scale_outputs(const Adapter& a, const OutputRows& rows, ColumnRange columns);
void scale_outputs(Device& device, const Adapter& a, const OutputRows& rows);  // all columns, on the device's threads

// dm += sum over the rows of dy * y / norm. y [rows, out]: before scale_outputs(); dy: of what that wrote.
void add_magnitude_gradient(Device& device, const Adapter& a, std::int64_t rows, const float* dy, const float* y);

}  // namespace mw::engine
