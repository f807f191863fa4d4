// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/catalogue.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/hardware/catalogue_rows.h"

namespace mw::hardware {
namespace {

namespace fs = std::filesystem;

// Calls read(row, location) for each row of the list `key` in `file`, and on_error for each error.
template <class Read, class OnError>
void for_each_row(const fs::path& file, const std::string& key, Read read, OnError on_error) {
  try {
    const Json document = read_json(file);
    const Sources sources = read_sources(document, file.string());
    const Json& rows = member(document, key, file.string());
    if (!rows.is_array())
      throw Error("HARDWARE-FILE", "the value is not a list of rows", {.file = file.string(), .place = key});
    for (size_t i = 0; i < rows.size(); ++i) try {
        read(rows[i], RowLocation{sources, file.string(), key + "[" + std::to_string(i) + "]", "HARDWARE-ROW"});
      } catch (const Error& e) {
        on_error(e);
      }
  } catch (const Error& e) {
    on_error(e);
  }
}

Error unknown_chip(const std::string& chip, const RowLocation& at, const std::vector<std::string>& known) {
  return Error("HARDWARE-ROW", "unknown chip",
               {.file = at.file,
                .place = at.row + ".chip",
                .found = chip,
                .expected = nearest_names_text(chip, known),
                .fix = "add the chip to chips.json"});
}

Figure estimate(double value, const char* why) {
  return {value, value / 4, value * 4, Provenance::derived, why};
}

}  // namespace

int Target::chips() const {
  return chip_count(shape);
}
int Target::hosts() const {
  const int each = chips() / slices;
  return slices * (each <= chip.chips_one_host ? 1 : (each + chip.chips_per_host - 1) / chip.chips_per_host);
}

std::optional<std::chrono::sys_days> first_day(const Price& price) {
  int parts[3] = {0, 1, 1};  // year, month, day
  const char* at = price.date.data();
  const char* const end = at + price.date.size();
  for (int i = 0; i < 3 && at != end; ++i) {
    const auto [stop, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || (stop != end && *stop != '-')) return std::nullopt;
    at = stop == end ? end : stop + 1;
  }
  using namespace std::chrono;
  const year_month_day whole{year(parts[0]), month(static_cast<unsigned>(std::abs(parts[1]))),
                             day(static_cast<unsigned>(std::abs(parts[2])))};
  if (parts[0] < 1970 || parts[0] > 9999) return std::nullopt;
  if (!whole.ok()) return sys_days(year(parts[0]) / January / 1);  // "2025-26": two years
  return sys_days(whole);
}

std::optional<int> age_days(const Price& price, std::chrono::sys_days today) {
  const auto day = first_day(price);
  if (!day) return std::nullopt;
  return std::max(0, static_cast<int>((today - *day).count()));
}

Catalogue Catalogue::load(const fs::path& folder, const fs::path& user_folder) {
  Catalogue c;
  c.this_machine_ = hardware::this_machine();
  c.calibration_ = folder / "calibration.json";
  c.read(folder, InvalidRows::thrown);
  if (!user_folder.empty()) c.add(user_folder);
  return c;
}

void Catalogue::add(const fs::path& user_folder) {
  if (const fs::path own = user_folder / "calibration.json"; path_exists(own)) calibration_ = own;
  read(user_folder, InvalidRows::collected);
}

void Catalogue::read(const fs::path& folder, InvalidRows invalid_rows) {
  const auto rows_of = [&](const char* name, const char* key, auto read_row) {
    const fs::path file = folder / name;
    if (invalid_rows == InvalidRows::thrown || path_exists(file))
      for_each_row(file, key, read_row, [&](const Error& e) {
        if (invalid_rows == InvalidRows::thrown) throw e;
        problems_.push_back(e.problem());
      });
  };
  const auto chip_ids = [&] {
    std::vector<std::string> ids;
    for (const Chip& known : chips_) ids.push_back(known.id);
    return ids;
  };
  rows_of("chips.json", "chips", [&](const Json& row, const RowLocation& at) {
    Chip found = read_chip(row, at);
    std::erase_if(chips_, [&](const Chip& old) { return old.id == found.id; });
    chips_.push_back(std::move(found));
  });
  rows_of("slices.json", "families", [&](const Json& row, const RowLocation& at) {
    SliceFamily family = read_slices(row, at);
    if (!chip(family.chip)) throw unknown_chip(family.chip, at, chip_ids());
    std::erase_if(slices_, [&](const SliceFamily& old) { return old.chip == family.chip; });
    slices_.push_back(std::move(family));
  });
  std::vector<Price> found;
  rows_of("prices.json", "prices", [&](const Json& row, const RowLocation& at) {
    Price one = read_price(row, at);
    if (!chip(one.chip)) throw unknown_chip(one.chip, at, chip_ids());
    found.push_back(std::move(one));
  });
  prices_.insert(prices_.begin(), found.begin(), found.end());  // the user's prices come first
}

const Chip* Catalogue::chip(std::string_view id) const {
  const auto found = std::find_if(chips_.begin(), chips_.end(), [&](const Chip& c) { return c.id == id; });
  return found == chips_.end() ? nullptr : &*found;
}

Target Catalogue::gpus(std::string_view id, int count, const Chip& chip) const {
  const int node = chip.chips_per_host;
  if (count > node && (count % node != 0 || count > (1 << 17)))
    throw Error("TARGET", "the number of GPUs does not fill nodes of " + std::to_string(node),
                {.place = "target.id",
                 .found = std::string(id.substr(0, 80)),
                 .expected = "1 to " + std::to_string(node) + ", or a multiple of " + std::to_string(node),
                 .fix = "use " + std::to_string((count + node - 1) / node * node) + "x" + chip.id});
  Target t;
  t.id = std::to_string(count) + "x" + chip.id;
  t.chip = chip;
  t.shape = count <= node ? std::vector<int>{count} : std::vector<int>{count / node, node};
  t.wrap.assign(t.shape.size(), true);  // GPUs are connected by a switch
  t.note =
      t.id + ": " + (count <= node ? "in one node" : counted(count / node, "node") + " of " + std::to_string(node));
  return t;
}

// `count` equal slices over the data-centre network, whose bandwidth must be known.
Target Catalogue::multi_slice(std::string_view id, int count, std::string_view slice) const {
  Target t = target(slice);
  if (!t.chip.egress)
    throw Error("TARGET", "the bandwidth of the data-centre network between slices of this chip is not known",
                {.place = "target.id",
                 .found = std::string(id.substr(0, 80)),
                 .expected = "one slice, or chips whose row has \"egress\"",
                 .fix = "use " + t.id + ", or add the chip with its egress to chips.json in the configuration folder"});
  if (count > 1024)
    throw Error("TARGET-SLICE", "too many slices",
                {.place = "target.id", .found = std::string(id.substr(0, 80)), .expected = "at most 1024"});
  if (count == 1) return t;
  t.slices = count;
  t.shape.insert(t.shape.begin(), count);
  t.wrap.insert(t.wrap.begin(), true);
  t.id = std::to_string(count) + "x" + t.id;
  t.note = t.id + ": " + counted(count, "slice") + " over the data-centre network; " + t.note;
  return t;
}

Target Catalogue::target(std::string_view id, std::string_view place) const try {
  const auto count_before = [&](std::string_view text, char end) {
    int n = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc() && stop != text.data() + text.size() && *stop == end && n > 0 ? n : 0;
  };
  if (id == "cpu") return cpu_target(this_machine_, 1);
  if (id.starts_with("cpu-")) {
    const std::string number = std::string(id.substr(4)) + ".";
    if (const int n = count_before(number, '.'); n > 0 && n <= 1024 && number.size() < 6)
      return cpu_target(this_machine_, n);
  }
  for (const SliceFamily& family : slices_)
    if (const std::optional<NamedSlice> slice = find_slice(family, id)) {
      Target t;
      t.id = slice->id;
      t.chip = *chip(family.chip);
      t.shape = slice->shape;
      t.wrap = wrapped_dimensions(family.wrap, slice->shape);
      t.note = describe_slice(family, slice->id, slice->shape);
      if (t.chip.max_chips > 0 && t.chips() > t.chip.max_chips)
        throw Error("TARGET-SLICE", "the slice is larger than the largest pod",
                    {.place = "target.id",
                     .found = std::string(id.substr(0, 80)),
                     .expected = "at most " + counted(t.chip.max_chips, "chip")});
      return t;
    }
  const int count = count_before(id, 'x');
  if (const std::string_view slice = count > 0 ? id.substr(id.find('x') + 1) : std::string_view();
      std::any_of(slices_.begin(), slices_.end(), [&](const SliceFamily& f) { return is_of_family(f, slice); }))
    return multi_slice(id, count, slice);
  if (count > 0)
    if (const Chip* c = chip(id.substr(id.find('x') + 1)); c && c->vendor == Vendor::gpu) return gpus(id, count, *c);
  throw Error("TARGET", "unknown target",
              {.place = "target.id",
               .found = std::string(id.substr(0, 80)),
               .expected = "a slice, GPUs such as 2xh100, or cpu; nearest: " + nearest_names_text(id, target_ids()),
               .fix = "choose one of these, or add the chip to chips.json in the configuration folder"});
} catch (const Error& error) {
  Problem problem = error.problem();
  problem.place = place;
  throw Error(std::move(problem), error.kind());
}

std::vector<std::string> Catalogue::target_ids() const {
  std::vector<std::string> ids;
  for (const SliceFamily& f : slices_)
    for (const Slice& s : f.slices) ids.push_back(f.prefixes.front() + std::to_string(s.suffix));
  for (const Chip& c : chips_)
    if (c.vendor == Vendor::gpu)
      for (int n = 1; n <= c.chips_per_host; n *= 2) ids.push_back(std::to_string(n) + "x" + c.id);
  ids.emplace_back("cpu");
  return ids;
}

const Price* Catalogue::price(std::string_view chip, std::string_view region, std::string_view price_class) const {
  const auto first = [&](std::string_view wanted) -> const Price* {
    for (const Price& p : prices_)
      if (p.chip == chip && p.usd_per_chip_hour > 0 && (wanted.empty() || p.price_class == wanted) &&
          (region.empty() || p.region == region))
        return &p;
    return nullptr;
  };
  if (!price_class.empty()) return first(price_class);
  const Price* on_demand = first("on demand");
  return on_demand ? on_demand : first({});
}

const Price* Catalogue::unpublished(std::string_view chip) const {
  for (const Price& p : prices_)
    if (p.chip == chip && p.usd_per_chip_hour == 0) return &p;
  return nullptr;
}

Chip this_machine() {
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  Chip c;
  c.id = "cpu";
  c.name = "this machine";
  c.vendor = Vendor::cpu;
  c.bf16_flops = estimate(cores * 64e9, "32 FLOP per cycle and core at 2 GHz, not measured");
  c.memory_bandwidth = estimate(std::min(cores * 8e9, 200e9), "8 GB/s per core, not measured");
  c.matmul_efficiency = {0.8, 0.5, 1, Provenance::derived, "not measured"};
  c.memory_efficiency = {0.8, 0.5, 1, Provenance::derived, "not measured"};
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  c.memory = {memory, memory, memory, Provenance::measured, "physical memory reported by the operating system"};
  c.marketed_memory = static_cast<std::int64_t>(memory);
  c.link_bandwidth = c.memory_bandwidth;  // virtual devices copy through memory
  c.link_latency = estimate(5e-6, "waking a thread, not measured");
  c.links = 1;
  c.matrix_unit = 1;
  c.chips_per_host = c.chips_one_host = c.max_chips = 1;
  return c;
}

Target cpu_target(const Chip& machine, int devices) {
  Target t;
  t.id = devices == 1 ? "cpu" : "cpu-" + std::to_string(devices);
  t.chip = machine;
  t.chip.devices_per_chip = devices;
  for (double* share : {&t.chip.memory.value, &t.chip.memory.low, &t.chip.memory.high}) *share /= devices;
  t.shape = {1};
  t.wrap = {true};
  t.note = devices == 1 ? "this machine" : "this machine shared by " + std::to_string(devices) + " virtual devices";
  return t;
}

}  // namespace mw::hardware
