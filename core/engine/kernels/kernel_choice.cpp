// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/kernel_choice.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/engine/kernels/packed_classes.h"

namespace mw::engine {
namespace {

constexpr const char* kCacheSchema = "meshwright-kernels-1";

// Processors whose kernels were timed on a quiet machine, with all of their classes.
struct ShippedChoice {
  const char* processor;
  Cpu limit;
  KernelChoice choice;
};
constexpr ShippedChoice kShipped[] = {
    // Zen 4: vdpbf16ps multiplies at twice the rate of FMAs.
    {"AuthenticAMD 25 17", Cpu::avx512_bf16, {{Cpu::avx512, Cpu::avx512_bf16, Cpu::avx512_bf16, Cpu::avx512_vnni}}},
};

const CpuKernels& kernels_of(Cpu cpu) {
  switch (cpu) {
#if defined(__x86_64__)
    case Cpu::amx:
      return kernels_amx();
    case Cpu::avx512_bf16:
      return kernels_avx512_bf16();
    case Cpu::avx512_vnni:
      return kernels_avx512_vnni();
    case Cpu::avx512:
      return kernels_avx512();
    case Cpu::avx_vnni:
      return kernels_avx_vnni();
    case Cpu::avx2:
      return kernels_avx2();
    default:
      return kernels_base();
#elif defined(__aarch64__)
    case Cpu::neon_bf16:
      return kernels_neon_bf16();
    case Cpu::neon_dotprod:
      return kernels_neon_dotprod();
    default:
      return kernels_neon();
#endif
  }
}

Arithmetic arithmetic_of(Cpu cpu) {
#if defined(__aarch64__)
  return cpu == Cpu::neon_bf16 ? Arithmetic::neon_bf16 : Arithmetic::neon;
#else
  return cpu == Cpu::amx ? Arithmetic::amx : cpu >= Cpu::avx2 ? Arithmetic::fma : Arithmetic::sse2;
#endif
}

#if defined(__x86_64__)
std::pair<unsigned, unsigned> family_and_model() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(1, &a, &b, &c, &d);
  return {(a >> 8 & 15) + (a >> 20 & 255), (a >> 4 & 15) | (a >> 12 & 240)};
}
#endif

// ---- timing ----

// Operands that stay in the L2 cache. Two bf16 values of 0.5 are an ordinary number as an f32, too.
struct TimedOperands {
  static constexpr std::int64_t kRows = 96, kColumns = 64, kDepth = 512;
  std::vector<std::uint16_t> a = std::vector<std::uint16_t>(kRows * kDepth, 0x3f00),
                             b = std::vector<std::uint16_t>(2 * kColumns * kDepth, 0x3f00);
  std::vector<std::int16_t> quantised = std::vector<std::int16_t>(kMaxSkinnyRows * kDepth, 100);
  std::vector<std::int8_t> bytes = std::vector<std::int8_t>(2 * kColumns * kDepth, 3);
  std::vector<float> scales = std::vector<float>(kMaxSkinnyRows * groups_of(kDepth), 1), c;
  TimedOperands() : c(kRows * kColumns) {}

  void multiply(ProductKind kind, const CpuKernels& kernels) {
    const TileOutput out{c.data(), kColumns, StoreMode::write};
    const GemmShape few{kMaxSkinnyRows, kColumns, kDepth};
    const GroupedStrip strip{a.data(), b.data(), kDepth * kPanelRows, kDepth / 2};
    switch (kind) {
      case ProductKind::f32:
        return kernels.f32.gemm.block(kRows, kColumns, &strip, 1, out, nullptr);
      case ProductKind::bf16:
        return kernels.bf16.gemm.block(kRows, kColumns, &strip, 1, out, nullptr);
      case ProductKind::few_bf16:
        return kernels.bf16.packed.skinny_rows(few, a.data(), b.data(), out);
      case ProductKind::int8:
        return kernels.bf16.packed.int8_rows(few, quantised.data(), scales.data(), {bytes.data(), b.data()}, out);
    }
  }
};

// The fastest class. A lower one has to be faster by a margin, so that noise does not prefer it.
Cpu fastest(ProductKind kind, const std::vector<Cpu>& classes, const TimeProduct& time) {
  constexpr int kRounds = 6;
  constexpr double kMargin = 0.95;
  std::vector<double> best(classes.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < classes.size(); ++i) best[i] = std::min(best[i], time(kind, classes[i]));
  size_t chosen = classes.size() - 1;
  for (size_t i = classes.size() - 1; i-- > 0;)
    if (best[i] < kMargin * best[chosen]) chosen = i;
  return classes[chosen];
}

// ---- cache ----

std::filesystem::path cache_file() {
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / "meshwright" / "kernels.json";
}

std::string cache_key(Arithmetic arithmetic, Cpu limit, const std::string& processor) {
  return "Meshwright " MW_VERSION ", " + processor + ", up to " + std::string(to_string(limit)) + ", " +
         std::string(to_string(arithmetic));
}

// Unreadable content counts as an empty cache.
Json parse_cache(std::string_view content) {
  try {
    if (Json cache = parse_json(content, "kernels.json");
        cache.is_object() && cache.value("schema", "") == kCacheSchema && cache["choices"].is_object())
      return cache;
  } catch (const std::exception&) {
  }
  return {{"schema", kCacheSchema}, {"choices", Json::object()}};
}

// A missing or unreadable file counts as an empty one.
std::string content_of(const std::filesystem::path& file) {
  constexpr std::uint64_t kMost = 1 << 20;
  try {
    return read_file(file, kMost);
  } catch (const std::exception&) {
    return {};
  }
}

// If the cache cannot be written, the next process times again.
void write_cache(const std::filesystem::path& file, Json cache, const std::string& key, const KernelChoice& choice) {
  Json entry = Json::object();
  for (const ProductKind kind : all_values<ProductKind>())
    entry[std::string(to_string(kind))] = to_string(choice[kind]);
  cache["choices"][key] = entry;
  try {
    write_file_atomically(file, cache.dump(2) + "\n");
  } catch (const std::exception&) {
  }
}

struct Chosen {
  std::once_flag once;
  KernelChoice choice;
  CpuKernels kernels;
};

const Chosen& chosen(Arithmetic arithmetic) {
  static std::array<Chosen, kEnumNames<Arithmetic>.size()> all;
  Chosen& own = all[static_cast<size_t>(arithmetic)];
  std::call_once(own.once, [&] {
    if (!has(arithmetic))
      throw Error("CPU", "the processor lacks the kernels' instruction set, or MESHWRIGHT_CPU excludes it",
                  {.place = "kernels",
                   .found = std::string(to_string(usable_cpu())),
                   .expected = std::string(to_string(arithmetic)),
                   .fix = "unset MESHWRIGHT_CPU, or use a processor that has it"});
    own.choice = choose_kernels(arithmetic, usable_cpu(), processor_model(), cache_file());
    own.kernels = kernels_of(own.choice);
  });
  return own;
}

}  // namespace

ProductKind product_kind(model::WeightType type, std::int64_t rows) {
  if (type == model::WeightType::f32) return ProductKind::f32;
  if (type == model::WeightType::int8 && rows <= kMaxInt8Rows) return ProductKind::int8;
  return type == model::WeightType::bf16 && rows <= kMaxSkinnyRows ? ProductKind::few_bf16 : ProductKind::bf16;
}

Arithmetic best_arithmetic() {
  return arithmetic_of(usable_cpu());
}

Arithmetic best_arithmetic(model::WeightType type) {
  const Arithmetic best = best_arithmetic();
  for (const Arithmetic common : {Arithmetic::fma, Arithmetic::neon})
    if (has(common) && gives_same_bits(best, common, type)) return common;
  return best;
}

bool has(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::fma:
      return usable_cpu() >= Cpu::avx2;
    case Arithmetic::neon:
      return arithmetic_of(Cpu::neon) == Arithmetic::neon;
    default:
      return best_arithmetic() == arithmetic;  // sse2, too: element-wise kernels have other bits where there is FMA
  }
}

bool gives_same_bits(Arithmetic a, Arithmetic b, model::WeightType type) {
  const auto family = [&](Arithmetic x) {
    if (type != model::WeightType::f32) return x;
    return x == Arithmetic::amx ? Arithmetic::fma : x == Arithmetic::neon_bf16 ? Arithmetic::neon : x;
  };
  return family(a) == family(b);
}

std::vector<Cpu> candidates(Arithmetic arithmetic, ProductKind kind, Cpu limit) {
  std::vector<Cpu> all;
  const auto add = [&](std::initializer_list<Cpu> classes) {
    for (const Cpu cpu : classes)
      if (cpu <= limit && has(cpu)) all.push_back(cpu);
  };
  const bool in_bf16 = kind == ProductKind::bf16 || kind == ProductKind::few_bf16;
  if (arithmetic == Arithmetic::sse2)
    add({Cpu::base});
  else if (arithmetic == Arithmetic::amx && in_bf16)
    add({Cpu::amx});
  else if (arithmetic == Arithmetic::fma || arithmetic == Arithmetic::amx)
    kind == ProductKind::f32 ? add({Cpu::avx2, Cpu::avx512})
    : in_bf16                ? add({Cpu::avx2, Cpu::avx512, Cpu::avx512_bf16})
                             : add({Cpu::avx2, Cpu::avx_vnni, Cpu::avx512, Cpu::avx512_vnni});
  else if (arithmetic == Arithmetic::neon_bf16)
    add({Cpu::neon_bf16});
  else
    kind == ProductKind::int8 ? add({Cpu::neon, Cpu::neon_dotprod}) : add({Cpu::neon});
  if (all.empty()) all.push_back(Cpu::base);  // MESHWRIGHT_CPU=base on ARM64
  return all;
}

std::string processor_model() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return "unknown";
  char vendor[13] = {};
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  const auto [family, model] = family_and_model();
  return std::string(vendor) + " " + std::to_string(family) + " " + std::to_string(model);
#else
  return "ARM64";
#endif
}

std::string processor_name() {
#if defined(__x86_64__)
  std::string brand;
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    unsigned part[4] = {};
    if (!__get_cpuid(leaf, &part[0], &part[1], &part[2], &part[3])) break;
    brand.append(reinterpret_cast<const char*>(part), sizeof part);
  }
  brand.resize(std::strlen(brand.c_str()));
  brand.erase(0, brand.find_first_not_of(' '));
  brand.erase(brand.find_last_not_of(' ') + 1);
  const auto [family, model] = family_and_model();
  return (brand.empty() ? std::string("x86-64") : brand) + " (family " + std::to_string(family) + ", model " +
         std::to_string(model) + ")";
#else
  return "ARM64";
#endif
}

std::optional<KernelChoice> cached_choice(std::string_view content, Arithmetic arithmetic, Cpu limit,
                                          const std::string& processor) {
  const Json cache = parse_cache(content);
  const auto entry = cache["choices"].find(cache_key(arithmetic, limit, processor));
  if (entry == cache["choices"].end() || !entry->is_object()) return std::nullopt;
  KernelChoice choice{.by = ChosenBy::cache};
  for (const ProductKind kind : all_values<ProductKind>()) {
    const auto name = entry->find(to_string(kind));
    if (name == entry->end() || !name->is_string()) return std::nullopt;
    const std::optional<Cpu> cpu = parse<Cpu>(name->get<std::string>());
    const std::vector<Cpu> known = candidates(arithmetic, kind, limit);
    if (!cpu || std::find(known.begin(), known.end(), *cpu) == known.end()) return std::nullopt;
    choice[kind] = *cpu;
  }
  return choice;
}

TimeProduct timed_products() {
  return [operands = std::make_shared<TimedOperands>()](ProductKind kind, Cpu cpu) {
    constexpr int kRepeats = 4;
    const auto start = std::chrono::steady_clock::now();
    for (int repeat = 0; repeat < kRepeats; ++repeat) operands->multiply(kind, kernels_of(cpu));
    return seconds_since(start);
  };
}

KernelChoice choose_kernels(Arithmetic arithmetic, Cpu limit, const std::string& processor,
                            const std::filesystem::path& cache, const TimeProduct& time) {
  KernelChoice choice;
  bool is_open = false;
  for (const ProductKind kind : all_values<ProductKind>()) {
    const std::vector<Cpu> all = candidates(arithmetic, kind, limit);
    choice[kind] = all.back();
    is_open = is_open || all.size() > 1;
  }
  if (!is_open) return choice;
  for (const ShippedChoice& shipped : kShipped)
    if (processor == shipped.processor && limit == shipped.limit && arithmetic == Arithmetic::fma) {
      choice = shipped.choice;
      choice.by = ChosenBy::shipped;
      return choice;
    }
  const std::string content = cache.empty() ? std::string() : content_of(cache);
  if (const auto known = cached_choice(content, arithmetic, limit, processor)) return *known;
  choice.by = ChosenBy::timing;
  for (const ProductKind kind : all_values<ProductKind>())
    choice[kind] = fastest(kind, candidates(arithmetic, kind, limit), time);
  if (!cache.empty()) write_cache(cache, parse_cache(content), cache_key(arithmetic, limit, processor), choice);
  return choice;
}

const KernelChoice& kernel_choice(Arithmetic arithmetic) {
  return chosen(arithmetic).choice;
}

const CpuKernels& cpu_kernels(Arithmetic arithmetic) {
  return chosen(arithmetic).kernels;
}

CpuKernels kernels_of(const KernelChoice& choice) {
  const CpuKernels& of_int8 = kernels_of(choice[ProductKind::int8]);
  const PackedKernels &few = kernels_of(choice[ProductKind::few_bf16]).bf16.packed, &int8 = of_int8.bf16.packed;
  CpuKernels kernels = kernels_of(choice[ProductKind::bf16]);
  PackedKernels& own = kernels.bf16.packed;
  own.skinny_rows = few.skinny_rows, own.skinny_bf16x12 = few.skinny_bf16x12;
  own.quantise_rows = int8.quantise_rows, own.int8_rows = int8.int8_rows;
  kernels.f32 = kernels_of(choice[ProductKind::f32]).f32;
  kernels.int8_instructions = of_int8.int8_instructions;
  return kernels;
}

std::string product_instructions(ProductKind kind, Arithmetic arithmetic) {
  const CpuKernels& kernels = kernels_of(kernel_choice(arithmetic)[kind]);
  return kind == ProductKind::f32    ? kernels.f32.instructions
         : kind == ProductKind::int8 ? kernels.int8_instructions
                                     : kernels.bf16.instructions;
}

std::string describe_kernels(model::WeightType type, Arithmetic arithmetic) {
  const auto of = [&](ProductKind kind) { return product_instructions(kind, arithmetic); };
  const std::string on = " on packed " + std::string(to_string(type)) + " weights";
  if (type == model::WeightType::f32) return of(ProductKind::f32) + on;
  if (type == model::WeightType::int8)
    return of(ProductKind::int8) + on + ", products in bf16 from " + std::to_string(kMaxInt8Rows + 1) + " rows on";
  const std::string many = of(ProductKind::bf16), few = of(ProductKind::few_bf16);
  return many + on + ", in 12 bits for inference" +
         (few == many ? "" : ", up to " + std::to_string(kMaxSkinnyRows) + " rows " + few);
}

std::vector<std::string> describe_choice() {
  std::vector<std::string> lines;
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16, model::WeightType::int8}) {
    const Arithmetic arithmetic = best_arithmetic(type);
    const auto competes_for = [&](std::int64_t rows) {
      return candidates(arithmetic, product_kind(type, rows), usable_cpu()).size() > 1;
    };
    const bool competes = competes_for(1) || competes_for(kMaxInt8Rows + 1);
    const ChosenBy by = competes ? kernel_choice(arithmetic).by : ChosenBy::only_one;
    lines.push_back(std::string(to_string(type)) + ": " + describe_kernels(type, arithmetic) + " (" +
                    std::string(to_string(by)) + ")");
  }
  return lines;
}

}  // namespace mw::engine
