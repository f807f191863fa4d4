// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/import/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/files.h"
#include "core/import/import_files.h"
#include "core/import/tar.h"
#include "core/store/chain.h"
#include "tests/formats/test_files.h"

namespace mw::importing {
namespace {
namespace fs = std::filesystem;
using formats::get;
using formats::problem_of;
using formats::put;
using test::Scratch;

store::RunId recorded_run(store::Store& store, const std::string& name, const std::string& checkpoint = {}) {
  experiment::Experiment experiment;
  experiment.set_value("name", name);
  experiment.set_value("train.learning_rate", 0.125);
  const store::RunId run = store.create(experiment, name);
  const auto lock = store.lock(run);
  store.append(run, {0, event::Started{{{"steps", 2}, {"text", "\u00b5 <&>"}}}});
  for (long step = 1; step <= 2; ++step)
    store.append(run, {0.1 * static_cast<double>(step), event::Metric{"train/loss", step, 1.0 / 3}});
  if (!checkpoint.empty()) {
    make_folders(store.run_folder(run) / checkpoint);
    write_file_atomically(store.run_folder(run) / checkpoint / "adapter.safetensors", std::string(70000, 'w'));
    store.append(run, {0.3, event::Checkpoint{2, (store.run_folder(run) / checkpoint).string()}});
  }
  event::Finished finished;
  finished.steps = 2;
  finished.seconds = 0.5;
  store.finish(run, 0.5, finished);
  return run;
}

// The events without the id of the run; checkpoints by name, without the hashes.
std::vector<std::string> lines_of(const store::Store& store, const store::RunId& run) {
  std::vector<std::string> lines;
  for (const store::StoredEvent& stored : store.events(run)) {
    Json json = to_json(stored.event, "");
    if (json.contains("path")) json["path"] = fs::path(json["path"].get<std::string>()).filename().string();
    for (const char* key : {"run", "files"}) json.erase(key);
    if (json.contains("info") && json["info"].is_object()) json["info"].erase("run");
    lines.push_back(json.dump());
  }
  return lines;
}

TEST(Bundle, RoundTripKeepsEverythingButTheId) {
  const Scratch folder;
  store::Store from(folder / "from"), to(folder / "to");
  const store::RunId first = recorded_run(from, "first <1>"), second = recorded_run(from, "second");
  from.set_tags(first, "good, kept");
  from.set_created(first, "2024-02-29T12:00:00Z");
  const fs::path file = folder / "two.meshwright.tar.zst";
  const BundleContents written = write_bundle(from, {second, first}, file, BundledCheckpoints::none);
  EXPECT_EQ(written.events_of, (std::vector<std::uint64_t>{4, 4}));
  EXPECT_TRUE(is_bundle(file));
  const std::vector<ImportResult> imported = import_files(folder / "to", {file});
  ASSERT_EQ(imported.size(), 2u);
  EXPECT_EQ(imported[1].name, "first <1>");
  for (const auto& [source, result] : {std::pair(second, imported[0]), {first, imported[1]}}) {
    EXPECT_EQ(to.experiment(result.run), from.experiment(source));
    EXPECT_EQ(lines_of(to, result.run), lines_of(from, source));
    store::RunRow a = *from.find(source), b = *to.find(result.run);
    b.id = a.id;
    EXPECT_EQ(a, b);
    EXPECT_EQ(store::verify_chain(to, result.run).state, store::ChainState::intact);
  }
}

TEST(Bundle, IsTheSameForTheSameRuns) {
  const Scratch folder;
  store::Store store(folder / "runs");
  const store::RunId run = recorded_run(store, "run");
  for (const char* name : {"a.meshwright.tar.zst", "b.meshwright.tar.zst"})
    write_bundle(store, {run}, folder / name, BundledCheckpoints::none);
  EXPECT_EQ(get(folder / "a.meshwright.tar.zst"), get(folder / "b.meshwright.tar.zst"));
}

TEST(Bundle, CarriesCheckpointsOnlyIfAskedFor) {
  const Scratch folder;
  store::Store from(folder / "from"), to(folder / "to");
  const store::RunId run = recorded_run(from, "run", "checkpoint-2");
  fs::create_symlink("/etc/passwd", from.run_folder(run) / "checkpoint-2" / "link");
  const fs::path with = folder / "with.meshwright.tar.zst", without = folder / "without.meshwright.tar.zst";
  EXPECT_EQ(write_bundle(from, {run}, with, BundledCheckpoints::all).files, 1u) << "links are left out";
  EXPECT_EQ(write_bundle(from, {run}, without, BundledCheckpoints::none).files, 0u);
  const store::RunId whole = import_bundle(to, with).runs.at(0), bare = import_bundle(to, without).runs.at(0);
  EXPECT_EQ(get(to.run_folder(whole) / "checkpoint-2/adapter.safetensors"), std::string(70000, 'w'));
  const store::ChainReport report = store::verify_chain(to, whole);
  EXPECT_EQ(report.state, store::ChainState::intact);
  EXPECT_EQ(report.checkpoints, 1);
  EXPECT_FALSE(path_exists(to.run_folder(bare) / "checkpoint-2"));
  for (const store::StoredEvent& stored : to.events(bare))
    if (const auto* checkpoint = std::get_if<event::Checkpoint>(&stored.event.body)) {
      EXPECT_EQ(checkpoint->path, "checkpoint-2");
    }
}

TEST(Bundle, RefusesRunsInProgressAndOtherExtensions) {
  const Scratch folder;
  store::Store store(folder / "runs");
  const store::RunId open = store.create(experiment::Experiment(), "open");
  const fs::path file = folder / "x.meshwright.tar.zst";
  EXPECT_EQ(problem_of([&] { write_bundle(store, {open}, file, BundledCheckpoints::none); }).found, "queued");
  EXPECT_EQ(problem_of([&] { write_bundle(store, {"run-9"}, file, BundledCheckpoints::none); }).id, "RUN-UNKNOWN");
  EXPECT_EQ(problem_of([&] { write_bundle(store, {open}, folder / "x.zip", BundledCheckpoints::none); }).id, "BUNDLE");
  EXPECT_FALSE(path_exists(file));
}

struct Part {
  std::string name, content;
};
const std::string kManifestText =
    R"({"format":"meshwright-bundle","version":1,"runs":[{"name":"a","created":"2024-02-29T12:00:00Z","tags":""}]})";
const std::string kStartEvent = R"({"event":"started","info":{},"time_s":0})"
                                "\n",
                  kEndEvent = R"({"event":"finished","state":"done","steps":0,"tokens":0,"seconds":1,"peak_bytes":0})"
                              "\n";
std::vector<Part> whole_parts() {
  return {{"bundle.json", kManifestText},
          {"runs/1/experiment.json", R"({"schema":1})"},
          {"runs/1/files/step-1/weights", "www"},
          {"runs/1/events.jsonl", kStartEvent + kEndEvent}};
}

std::string tar_of(const std::vector<Part>& parts) {
  std::string out;
  TarWriter tar(
      [&](std::span<const std::byte> bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  for (const Part& part : parts) tar.add(part.name, part.content);
  tar.finish();
  return out;
}

// Writes into a header and corrects its checksum.
std::string patched(std::string tar, size_t header, size_t at, std::string_view bytes) {
  std::copy(bytes.begin(), bytes.end(), tar.begin() + static_cast<long>(header + at));
  std::uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[header + i]);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", static_cast<unsigned>(sum));
  std::memcpy(tar.data() + header + 148, text, 7);
  return tar;
}

TEST(Bundle, RefusesHostileArchivesAndLeavesNoRun) {
  const Scratch folder;
  const std::vector<Part> parts = whole_parts();
  const std::string whole = tar_of(parts);
  const auto with = [&](size_t index, Part part) {
    std::vector<Part> changed = parts;
    changed.at(index) = std::move(part);
    return tar_of(changed);
  };
  std::vector<Part> extra = parts, twice = parts;
  extra.push_back({"runs/2/experiment.json", "{}"});
  twice.insert(twice.begin() + 3, parts[2]);
  const size_t files = 2 * 2 * kTarBlock;  // the header of the third entry
  std::string unsummed = whole;
  unsummed[files] = 'x';
  const std::pair<const char*, std::string> cases[]{
      {"climbing name", patched(whole, files, 0, std::string_view("runs/1/files/../../../x\0\0\0\0", 27))},
      {"absolute name", patched(whole, files, 0, std::string_view("/tmp/runs/1/files/a/b\0\0\0\0\0\0", 27))},
      {"symbolic link", patched(whole, files, 156, "2")},
      {"hard link", patched(whole, files, 156, "1")},
      {"device", patched(whole, files, 156, "3")},
      {"folder", patched(whole, files, 156, "5")},
      {"long name of GNU", patched(whole, files, 156, "L")},
      {"prefix", patched(whole, files, 345, "..")},
      {"size beyond the end", patched(whole, files, 124, "00007777777")},
      {"size above the limit",
       patched(whole, files, 124, std::string_view("\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12))},
      {"size without digits", patched(whole, files, 124, "-1         ")},
      {"wrong checksum", unsummed},
      {"cut", whole.substr(0, whole.size() - 3 * kTarBlock)},
      {"data behind the end", whole + "x"},
      {"entry of no run", tar_of(extra)},
      {"entry twice", tar_of(twice)},
      {"file outside a checkpoint", with(2, {"runs/1/files/weights", "www"})},
      {"version 2", with(0, {"bundle.json", R"({"format":"meshwright-bundle","version":2,"runs":[]})"})},
      {"no runs", with(0, {"bundle.json", R"({"format":"meshwright-bundle","version":1,"runs":[]})"})},
      {"date", with(0, {"bundle.json", R"({"format":"meshwright-bundle","version":1,"runs":[{"created":"now"}]})"})},
      {"events after the end", with(3, {"runs/1/events.jsonl", kStartEvent + kEndEvent + kStartEvent})},
      {"no end", with(3, {"runs/1/events.jsonl", kStartEvent})},
      {"half a line", with(3, {"runs/1/events.jsonl", kStartEvent + kEndEvent.substr(0, 20)})},
      {"checkpoint elsewhere", with(3, {"runs/1/events.jsonl", kStartEvent +
                                                                   R"({"event":"checkpoint","step":1,"path":"/etc"})"
                                                                   "\n" +
                                                                   kEndEvent})},
      {"no event", with(3, {"runs/1/events.jsonl", "[]\n"})}};
  store::Store store(folder / "runs");
  for (const auto& [name, bytes] : cases) {
    put(folder / "case.tar", bytes);
    EXPECT_THROW(check_bundle(folder / "case.tar"), Error) << name;
    EXPECT_THROW(import_bundle(store, folder / "case.tar"), Error) << name;
    EXPECT_TRUE(store.list().empty()) << name;
  }
  EXPECT_FALSE(path_exists(folder / "x"));
  put(folder / "case.tar", whole);
  EXPECT_EQ(import_bundle(store, folder / "case.tar").runs.size(), 1u);
  EXPECT_EQ(store.list().at(0).created, "2024-02-29T12:00:00Z");
}

TEST(Tar, SizesAboveEightGibibytesAreBase256) {
  std::string header;
  TarWriter writer([&](std::span<const std::byte> bytes) {
    header.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  writer.begin("large", 1ull << 40);
  size_t at = 0;
  TarReader reader(
      [&](std::span<char> out) {
        const size_t n = std::min(out.size(), header.size() - at);
        std::memcpy(out.data(), header.data() + at, n);
        at += n;
        return n;
      },
      "memory");
  const auto entry = reader.next();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->bytes, 1ull << 40);
}

TEST(Tar, NamesStayBelowTheFolder) {
  for (const char* good : {"a", "runs/1/events.jsonl", "a..b/c.d", "-x", "checkpoint-20/adapter_model.safetensors"})
    EXPECT_TRUE(is_archive_name(good)) << good;
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a b", "a\\b", "a:b", "\xC3\xA4"})
    EXPECT_FALSE(is_archive_name(bad)) << bad;
  EXPECT_FALSE(is_archive_name(std::string(101, 'a')));
}

}  // namespace
}  // namespace mw::importing
