// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/catalogue_rows.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/base/counted.h"
#include "core/base/error.h"

namespace mw::hardware {
namespace {

enum class Unit { bytes, bytes_per_second, operations, seconds, share };

struct UnitName {
  std::string_view name;
  Unit unit;
  double factor;
};
constexpr std::array kUnits{UnitName{"B", Unit::bytes, 1},
                            UnitName{"MiB", Unit::bytes, 1048576.0},
                            UnitName{"GB", Unit::bytes, 1e9},
                            UnitName{"GiB", Unit::bytes, 1073741824.0},
                            UnitName{"GB/s", Unit::bytes_per_second, 1e9},
                            UnitName{"TB/s", Unit::bytes_per_second, 1e12},
                            UnitName{"TFLOP/s", Unit::operations, 1e12},
                            UnitName{"TOP/s", Unit::operations, 1e12},
                            UnitName{"us", Unit::seconds, 1e-6},
                            UnitName{"%", Unit::share, 0.01}};

// Notation and limits of a figure. Within the limits, bytes of a million devices fit into 64 bits.
struct UnitRule {
  std::string_view example;
  double min, max;
  std::string_view range;
};
UnitRule unit_rule(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return {"bytes, as in \"31.25 GiB\"", 1, 8e12, "1 B to 8000 GB"};
    case Unit::bytes_per_second:
      return {"bytes per second, as in \"819 GB/s\"", 1, 1e18, "1e-9 GB/s to 1e6 TB/s"};
    case Unit::operations:
      return {"operations per second, as in \"459 TFLOP/s\"", 1, 1e21, "1e-12 to 1e9 TFLOP/s"};
    case Unit::seconds:
      return {"a time, as in \"1 us\"", 1e-12, 1e3, "1e-6 to 1e9 us"};
    case Unit::share:
      return {"a percentage, as in \"83 %\"", 1e-9, 1, "at most 100 %"};
  }
  return {};
}

constexpr std::array<std::pair<std::string_view, Provenance>, 4> kKinds{{{"measured", Provenance::measured},
                                                                         {"published", Provenance::published},
                                                                         {"derived", Provenance::derived},
                                                                         {"unverified", Provenance::unverified}}};

double quantity(const JsonRow& row, const Json& value, const std::string& key, Unit unit) {
  const std::string all = row.as_text(value, key);
  double number = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  std::string_view name(end, static_cast<size_t>(all.data() + all.size() - end));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const UnitName& u : kUnits)
    if (error == std::errc() && u.unit == unit && u.name == name) {
      const double found = number * u.factor;
      const UnitRule rule = unit_rule(unit);
      if (!(found >= rule.min && found <= rule.max))
        row.bad(key, "the figure is out of range", all, std::string(rule.range));
      return found;
    }
  row.bad(key, "the value is not a number with a unit", all, std::string(unit_rule(unit).example));
}

// "459 TFLOP/s", or {"value", "low", "high", "kind", "source"}. Defaults: the row's source, kind "published".
Figure figure(JsonRow& row, const std::string& key, Unit unit) {
  const Json* value = row.optional(key);
  if (!value) return {};
  if (value->is_string()) {
    const double v = quantity(row, *value, key, unit);
    return {v, v, v, Provenance::published, row.source()};
  }
  if (!value->is_object())
    row.bad(key, "the value is not a number with a unit", json_excerpt(*value), std::string(unit_rule(unit).example));
  JsonRow part(*value, row.inside(key));
  Figure f;
  f.value = quantity(part, part.required("value"), "value", unit);
  const Json *low = part.optional("low"), *high = part.optional("high"), *from = part.optional("source");
  f.low = low ? quantity(part, *low, "low", unit) : f.value;
  f.high = high ? quantity(part, *high, "high", unit) : f.value;
  if (f.low > f.value || f.high < f.value)
    part.bad("", "the value is outside its range", json_excerpt(*value), "low <= value <= high");
  f.kind = part.choice("kind", part.text_or("kind", "published"), kKinds);
  f.source = from ? part.as_source(*from, "source") : row.source();
  part.finish();
  return f;
}

BandwidthCurve curve(JsonRow& row, const std::string& key) {
  const Json* value = row.optional(key);
  if (!value) return {};
  JsonRow part(*value, row.inside(key));
  BandwidthCurve c;
  c.chips = part.as_whole<int>(part.required("chips"), "chips", 2, 1 << 20);
  c.source = part.source();
  for (const Json& point : part.list("points")) {
    if (!point.is_array() || point.size() != 2)
      part.bad("points", "the entry is not a point", json_excerpt(point), "[payload, bandwidth]");
    const double bytes = quantity(part, point[0], "points", Unit::bytes);
    if (!c.points.empty() && bytes <= c.points.back().first)
      part.bad("points", "the payloads do not ascend", json_excerpt(point), "a payload larger than the previous one");
    c.points.emplace_back(bytes, quantity(part, point[1], "points", Unit::bytes_per_second));
  }
  part.finish();
  return c;
}

std::vector<int> grid(const JsonRow& row, const Json& value) {
  std::vector<int> shape;
  if (!value.is_array() || value.empty() || value.size() > 3)
    row.bad("shape", "the value is not a grid", json_excerpt(value), "[4, 4, 8]");
  for (const Json& side : value) shape.push_back(row.as_whole<int>(side, "shape", 1, 1024));
  return shape;
}

Slice read_slice(const Json& json, RowLocation at, const std::string& family_source) {
  JsonRow row(json, std::move(at));
  Slice s;
  s.suffix = row.as_whole<int>(row.required("suffix"), "suffix", 1, 1 << 20);
  s.shape = grid(row, row.required("shape"));
  const Json* from = row.optional("source");
  s.source = from ? row.as_source(*from, "source") : family_source;
  if (row.optional("machines"))
    for (const Json& machine : row.list("machines")) s.machines.push_back(row.as_text(machine, "machines"));
  row.finish();
  return s;
}

WrapRule read_wrap(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  constexpr std::array<std::pair<std::string_view, WrapRule::Kind>, 3> kinds{
      {{"none", WrapRule::Kind::none}, {"side", WrapRule::Kind::side}, {"cubes", WrapRule::Kind::cubes}}};
  WrapRule rule;
  rule.kind = row.choice("rule", row.text("rule"), kinds);
  if (rule.kind != WrapRule::Kind::none) rule.size = row.as_whole<int>(row.required("size"), "size", 2, 1024);
  rule.source = row.source();
  row.finish();
  return rule;
}

}  // namespace

Chip read_chip(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  Chip c;
  c.id = row.text("id");
  row.rename("chips." + c.id);
  c.name = row.text("name");
  constexpr std::array<std::pair<std::string_view, Vendor>, 2> vendors{{{"tpu", Vendor::tpu}, {"gpu", Vendor::gpu}}};
  c.vendor = row.choice("vendor", row.text("vendor"), vendors);
  c.maker = row.text_or("maker", "");
  c.devices_per_chip = row.whole("devices_per_chip", 1, 1, 16);
  c.bf16_flops = figure(row, "bf16", Unit::operations);
  c.f32_flops = figure(row, "f32", Unit::operations);
  c.fp8_flops = figure(row, "fp8", Unit::operations);
  c.int8_ops = figure(row, "int8", Unit::operations);
  c.memory_bandwidth = figure(row, "memory_bandwidth", Unit::bytes_per_second);
  c.matmul_efficiency = figure(row, "matmul_efficiency", Unit::share);
  c.memory_efficiency = figure(row, "memory_efficiency", Unit::share);
  c.fp8_efficiency = figure(row, "fp8_efficiency", Unit::share);
  c.vector_ops = figure(row, "vector", Unit::operations);
  c.attention_efficiency = figure(row, "attention_efficiency", Unit::share);
  c.memory = figure(row, "memory", Unit::bytes);
  for (const auto& [figure, key] : {std::pair(&c.memory_bandwidth, "memory_bandwidth"), std::pair(&c.memory, "memory")})
    if (!*figure) row.bad(key, "a required key is missing", "", "\"" + std::string(key) + "\"");
  c.marketed_memory =
      static_cast<std::int64_t>(quantity(row, row.required("marketed_memory"), "marketed_memory", Unit::bytes));
  c.on_chip_memory = figure(row, "on_chip_memory", Unit::bytes);
  c.link_bandwidth = figure(row, "link_bandwidth", Unit::bytes_per_second);
  c.link_latency = figure(row, "link_latency", Unit::seconds);
  c.links = row.whole("links", 1, 1, 64);
  c.all_reduce = curve(row, "all_reduce");
  c.all_reduce_pair = curve(row, "all_reduce_pair");
  c.all_reduce_nodes = curve(row, "all_reduce_nodes");
  c.all_gather = curve(row, "all_gather");
  c.host_link = figure(row, "host_link", Unit::bytes_per_second);
  c.egress = figure(row, "egress", Unit::bytes_per_second);
  c.chips_per_host = row.whole("chips_per_host", 8, 1, 1024);
  c.chips_one_host = row.whole("chips_one_host", c.chips_per_host, 1, 1024);
  c.max_chips = row.whole("max_chips", 0, 1, 1 << 20);
  c.matrix_unit = row.whole("matrix_unit", 1, 1, 1024);
  if (row.optional("same_die"))
    for (const Json& chip : row.list("same_die")) c.same_die.push_back(row.as_text(chip, "same_die"));
  if (const Json* tile = row.optional("tile"); tile) {  // [rows of 32, 16, 8 bit, columns]
    if (!tile->is_array() || tile->size() != 4) row.bad("tile", "wrong type", json_excerpt(*tile), "[8, 8, 32, 128]");
    const auto at_index = [&](size_t i) { return row.as_whole<std::int64_t>((*tile)[i], "tile", 1, 4096); };
    c.tile_rows_f32 = at_index(0), c.tile_rows_bf16 = at_index(1), c.tile_rows_8bit = at_index(2);
    c.tile_columns = at_index(3);
  }
  const std::string source = row.source();
  if (const Json* facts = row.optional("facts"); facts) {
    if (!facts->is_object()) row.bad("facts", "wrong type", json_excerpt(*facts), "{\"name\": \"text\"}");
    for (const auto& [name, fact] : facts->items()) {
      const bool pair = fact.is_array() && fact.size() == 2;
      c.facts.push_back({name, row.as_text(pair ? fact[0] : fact, "facts." + name),
                         pair ? row.as_source(fact[1], "facts." + name) : source});
    }
  }
  row.finish();
  return c;
}

SliceFamily read_slices(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  SliceFamily f;
  f.chip = row.text("chip");
  row.rename("families." + f.chip);
  for (const Json& prefix : row.list("prefixes")) f.prefixes.push_back(row.as_text(prefix, "prefixes"));
  f.counts = row.text("counts");
  f.per_chip = row.whole("per_chip", 1, 1, 16);
  f.source = row.source();
  f.wrap = read_wrap(row.required("wrap"), row.inside("wrap"));
  int index = 0;
  for (const Json& slice : row.list("slices")) {
    Slice s = read_slice(slice, row.inside("slices[" + std::to_string(index++) + "]"), f.source);
    if (chip_count(s.shape) * f.per_chip != s.suffix)
      row.bad("slices", "the suffix does not match the grid",
              f.prefixes.front() + std::to_string(s.suffix) + " with " + shape_text(s.shape),
              "a grid of " + counted(s.suffix / f.per_chip, "chip"));
    f.slices.push_back(std::move(s));
  }
  row.finish();
  return f;
}

Price read_price(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  Price p;
  p.chip = row.text("chip");
  p.date = row.text("date");
  p.source = row.source();
  if (row.flag("unpublished", false)) {
    row.finish();
    return p;
  }
  const Json& usd = row.required("usd_per_chip_hour");
  if (!usd.is_number() || !std::isfinite(usd.get<double>()) || usd <= 0 || usd > 10000)
    row.bad("usd_per_chip_hour", "the value is not a price", json_excerpt(usd),
            "dollars per chip and hour, more than 0 and up to 10000");
  p.usd_per_chip_hour = usd.get<double>();
  p.region = row.text("region");
  p.price_class = row.text("class");
  p.machine = row.text_or("machine", "");
  p.verified = row.flag("verified", true);
  row.finish();
  return p;
}

}  // namespace mw::hardware
