// SPDX-License-Identifier: Apache-2.0
#include "core/import/bundle.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>

#include "core/base/atomic_file.h"
#include "core/base/files.h"
#include "core/data/dataset/data_file.h"
#include "core/import/import_files.h"
#include "core/import/tar.h"

namespace mw::importing {
namespace fs = std::filesystem;
namespace {

constexpr int kBundleVersion = 1, kCompressionLevel = 6;
constexpr size_t kMostRuns = 10'000, kMostEventLine = 64 << 20;
constexpr std::uint64_t kMostManifest = 16 << 20, kMostEventBytes = 8ull << 30;
constexpr const char* kManifest = "bundle.json";

std::string folder_in_bundle(size_t run) {
  return "runs/" + std::to_string(run + 1) + "/";
}

// Compresses into a file that replaces `target` when it is complete.
class CompressedFile {
 public:
  explicit CompressedFile(const fs::path& target) : file_(target), context_(ZSTD_createCCtx()) {
    if (!context_) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kCompressionLevel);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  void write(std::span<const std::byte> bytes) { compress(bytes, ZSTD_e_continue); }
  std::uint64_t commit() {
    compress({}, ZSTD_e_end);
    file_.commit();
    return written_;
  }

 private:
  void compress(std::span<const std::byte> bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
      const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (ZSTD_isError(left))
        throw Error("BUNDLE", "the bundle cannot be compressed", {.found = ZSTD_getErrorName(left)},
                    Error::Kind::failed);
      file_.write(std::as_bytes(std::span(piece_.data(), out.pos)));
      written_ += out.pos;
      if (directive == ZSTD_e_continue ? in.pos == in.size : left == 0) return;
    }
  }
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  AtomicFile file_;
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::array<char, 1 << 16> piece_{};
  std::uint64_t written_ = 0;
};

// An event as its line in the bundle: without the id of this store, checkpoints by their name alone.
std::string event_line(Event event) {
  if (auto* checkpoint = std::get_if<event::Checkpoint>(&event.body))
    checkpoint->path = fs::path(checkpoint->path).filename().string();
  if (auto* started = std::get_if<event::Started>(&event.body); started && started->info.is_object())
    started->info.erase("run");
  return dump_utf8(to_json(event, "")) + "\n";
}

struct BundledFile {
  std::string name;  // below the folder of the run: "checkpoint-20/adapter_model.safetensors"
  fs::path path;
  std::uint64_t bytes = 0;
};

// The regular files of the checkpoints that the events name and that still exist in the run's folder.
std::vector<BundledFile> checkpoint_files(const store::Store& store, const store::RunId& run) {
  std::vector<BundledFile> files;
  const fs::path folder = store.run_folder(run);
  std::set<std::string> names;
  store.read_events(run, [&](const store::StoredEvent& stored) {
    if (const auto* checkpoint = std::get_if<event::Checkpoint>(&stored.event.body))
      names.insert(fs::path(checkpoint->path).filename().string());
  });
  for (const std::string& name : names) {
    if (name.empty() || !is_archive_name(name) || !is_folder(folder / name)) continue;
    std::error_code error;
    for (fs::directory_iterator at(folder / name, error), end; !error && at != end; at.increment(error))
      if (at->symlink_status().type() == fs::file_type::regular)
        files.push_back({name + "/" + at->path().filename().string(), at->path(), at->file_size()});
  }
  std::sort(files.begin(), files.end(), [](const BundledFile& a, const BundledFile& b) { return a.name < b.name; });
  return files;
}

void add_file(const BundledFile& file, const std::string& name, TarWriter& tar) {
  tar.begin(name, file.bytes);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(::fdopen(open_input(file.path), "rb"), std::fclose);
  std::array<char, 1 << 16> piece{};
  for (size_t n = 0; in && (n = std::fread(piece.data(), 1, piece.size(), in.get())) > 0;)
    tar.write(std::as_bytes(std::span(piece.data(), n)));
}

Json manifest_of(const store::Store& store, const std::vector<store::RunId>& runs) {
  Json list = Json::array();
  for (const store::RunId& run : runs) {
    const std::optional<store::RunRow> row = store.find(run);
    if (!row)
      throw Error("RUN-UNKNOWN", "there is no such run",
                  {.file = store.folder().string(), .found = run, .expected = "a run id listed by `runs`"});
    if (row->state != RunState::done && row->state != RunState::failed && row->state != RunState::cancelled)
      throw Error("BUNDLE", "the run has not ended",
                  {.place = run,
                   .found = std::string(to_string(row->state)),
                   .expected = "a run that is done, failed or cancelled",
                   .fix = "wait for its end, or stop it"});
    list.push_back({{"id", run}, {"name", row->name}, {"created", row->created}, {"tags", row->tags}});
  }
  return {{"format", "meshwright-bundle"},
          {"version", kBundleVersion},
          {"made_by", "Meshwright " MW_VERSION},
          {"runs", std::move(list)}};
}

// "2026-01-31T12:00:00Z".
bool is_utc_time(const std::string& text) {
  static constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (kForm[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return false;
  return true;
}

struct BundledRun {
  std::string name, created, tags;
};

// Receives the parts of a bundle in their order.
class BundleVisitor {
 public:
  virtual ~BundleVisitor() = default;
  virtual void run(const BundledRun&, const experiment::Experiment&) {}
  virtual void file(const std::string&, std::uint64_t, TarReader&) {}  // its name below the folder of the run
  virtual void event(Event&&) {}
  virtual void end_of_run() {}
};

// Reads a bundle and checks everything that a reader relies on.
class BundleReader {
 public:
  BundleReader(const fs::path& file, BundleVisitor& visitor)
      : file_(file.string()),
        data_(file),
        visitor_(visitor),
        tar_([this](std::span<char> out) { return data_.read(out); }, file_) {}
  BundleContents read() {
    std::optional<TarReader::Entry> entry = tar_.next();
    if (!entry || entry->name != kManifest) bad("the file is no bundle", "", entry ? entry->name : "", kManifest);
    take_manifest(parse_json(tar_.content(*entry, kMostManifest), file_ + ", " + kManifest));
    entry = tar_.next();
    for (size_t i = 0; i < runs_.size(); ++i) entry = read_run(i, std::move(entry));
    if (entry) bad("the bundle has an entry that belongs to no run", entry->name, "", "entries of its runs");
    return contents_;
  }

 private:
  [[noreturn]] void bad(const std::string& message, const std::string& place, const std::string& found,
                        const std::string& expected) const {
    refuse_bundle(file_, message, place, found, expected);
  }
  std::string text(const Json& run, const char* key) const {
    const Json* value = find_member(run, key);
    if (!value) return {};
    if (!value->is_string()) bad("a field of the bundle is invalid", key, json_excerpt(*value), "a text");
    return value->get<std::string>();
  }
  void take_manifest(const Json& manifest) {
    const Json *format = find_member(manifest, "format"), *version = find_member(manifest, "version"),
               *runs = find_member(manifest, "runs");
    if (!format || *format != "meshwright-bundle" || !version || !version->is_number_integer())
      bad("the file is no bundle", kManifest, format ? json_excerpt(*format) : "no format", "meshwright-bundle");
    if (version->get<long>() != kBundleVersion)
      bad("the bundle has another version", kManifest, version->dump(), std::to_string(kBundleVersion));
    if (!runs || !runs->is_array() || runs->empty() || runs->size() > kMostRuns)
      bad("a field of the bundle is invalid", "runs", runs ? json_excerpt(*runs) : "nothing",
          "a list of 1 to " + std::to_string(kMostRuns) + " runs");
    for (const Json& run : *runs) {
      BundledRun one{text(run, "name"), text(run, "created"), text(run, "tags")};
      if (!is_utc_time(one.created))
        bad("a date of the bundle is invalid", "created", one.created, "2026-01-31T12:00:00Z");
      runs_.push_back(std::move(one));
    }
  }
  // Returns the entry behind the run.
  std::optional<TarReader::Entry> read_run(size_t index, std::optional<TarReader::Entry> entry) {
    const std::string folder = folder_in_bundle(index);
    if (!entry || entry->name != folder + "experiment.json")
      bad("a run of the bundle has no experiment", "", entry ? entry->name : "its end", folder + "experiment.json");
    visitor_.run(runs_[index], experiment::Experiment::from_json(
                                   parse_json(tar_.content(*entry, kMaxJsonFile), file_ + ", " + entry->name)));
    contents_.names.push_back(runs_[index].name);
    contents_.events_of.push_back(0);
    const std::string files = folder + "files/";
    for (entry = tar_.next(); entry && entry->name.starts_with(files); entry = tar_.next()) {
      const std::string name = entry->name.substr(files.size());
      if (std::count(name.begin(), name.end(), '/') != 1)
        bad("the bundle has a file outside a checkpoint", entry->name, "", files + "CHECKPOINT/FILE");
      visitor_.file(name, entry->bytes, tar_);
      ++contents_.files;
      contents_.bytes += entry->bytes;
    }
    if (!entry || entry->name != folder + "events.jsonl")
      bad("a run of the bundle has no events", "", entry ? entry->name : "its end", folder + "events.jsonl");
    read_events(*entry);
    visitor_.end_of_run();
    return tar_.next();
  }
  void read_events(const TarReader::Entry& entry) {
    if (entry.bytes > kMostEventBytes)
      bad("an entry of the bundle is too large", entry.name, std::to_string(entry.bytes) + " bytes",
          "at most " + std::to_string(kMostEventBytes));
    ended_ = false;
    std::string line;
    std::array<char, 1 << 16> piece{};
    long number = 0;
    for (size_t n = tar_.read(piece); n > 0; n = tar_.read(piece))
      for (std::string_view left(piece.data(), n); !left.empty();) {
        const size_t end = left.find('\n');
        line += left.substr(0, end);
        left.remove_prefix(std::min(left.size(), end == std::string_view::npos ? end : end + 1));
        if (line.size() > kMostEventLine)
          bad("an event of the bundle is too long", entry.name, std::to_string(line.size()) + " bytes",
              "at most " + std::to_string(kMostEventLine));
        if (end == std::string_view::npos) continue;
        take_event(line, entry.name + ", line " + std::to_string(++number));
        line.clear();
      }
    if (!line.empty() || !ended_)
      bad("the events of a run are incomplete", entry.name, "no end of the run", "a finished event at the end");
  }
  void take_event(const std::string& line, const std::string& place) {
    if (ended_) bad("the bundle has events after the end of the run", place, text_excerpt(line), "no event");
    Event event = event_from_json(parse_json(line, file_ + ", " + place));
    ended_ = std::holds_alternative<event::Finished>(event.body);
    if (const auto* checkpoint = std::get_if<event::Checkpoint>(&event.body);
        checkpoint && (!is_archive_name(checkpoint->path) || checkpoint->path.find('/') != std::string::npos))
      bad("a checkpoint of the bundle has a forbidden name", place, checkpoint->path, "a name without folders");
    ++contents_.events_of.back();
    visitor_.event(std::move(event));
  }

  std::string file_;
  data::DataFile data_;
  BundleVisitor& visitor_;
  TarReader tar_;
  std::vector<BundledRun> runs_;
  BundleContents contents_;
  bool ended_ = false;
};

// Records what it receives as new runs of a store.
class RunRecorder : public BundleVisitor {
 public:
  explicit RunRecorder(store::Store& store) : store_(store) {}
  void run(const BundledRun& run, const experiment::Experiment& experiment) override {
    created_.push_back(store_.create(experiment, run.name));
    lock_ = store_.lock(created_.back());
    folders_.clear();
    store_.set_created(created_.back(), run.created);
    if (!run.tags.empty()) store_.set_tags(created_.back(), run.tags);
  }
  void file(const std::string& name, std::uint64_t bytes, TarReader& tar) override {
    const std::string checkpoint = name.substr(0, name.find('/'));
    const fs::path folder = store_.run_folder(created_.back()) / checkpoint;
    if (folders_.insert(checkpoint).second) make_folders(folder);
    std::error_code error;
    if (const fs::space_info space = fs::space(folder, error); !error && space.available < bytes)
      throw Error("BUNDLE", "the disk has no room for a checkpoint of the bundle",
                  {.file = folder.string(),
                   .found = std::to_string(space.available) + " bytes free",
                   .expected = std::to_string(bytes)},
                  Error::Kind::failed);
    AtomicFile out(folder / name.substr(checkpoint.size() + 1));
    std::array<char, 1 << 18> piece{};
    for (size_t n = tar.read(piece); n > 0; n = tar.read(piece)) out.write(std::as_bytes(std::span(piece.data(), n)));
    out.commit();
  }
  void event(Event&& event) override {
    if (auto* checkpoint = std::get_if<event::Checkpoint>(&event.body);
        checkpoint && folders_.contains(checkpoint->path))
      checkpoint->path = (store_.run_folder(created_.back()) / checkpoint->path).string();
    if (auto* finished = std::get_if<event::Finished>(&event.body))
      finish_recorded(store_, created_.back(), event.time_s, std::move(*finished));
    else
      store_.append(created_.back(), event);
  }
  void end_of_run() override { lock_.reset(); }

  // Removes the runs that were created before an error. Never throws: the error tells more.
  void remove_all() noexcept {
    lock_.reset();
    for (const store::RunId& run : created_) try {
        store_.set_deleted(run, store::Trash::deleted);
        store_.purge(run);
      } catch (const std::exception&) {  // stays in the trash or as an interrupted run
      }
  }
  const std::vector<store::RunId>& created() const { return created_; }

 private:
  store::Store& store_;
  std::vector<store::RunId> created_;
  std::unique_ptr<store::RunLock> lock_;
  std::set<std::string> folders_;  // of checkpoints of the current run
};

}  // namespace

BundleContents write_bundle(const store::Store& store, const std::vector<store::RunId>& runs, const fs::path& out,
                            BundledCheckpoints checkpoints, const std::stop_token& stop) {
  if (!out.string().ends_with(kBundleExtension))
    throw Error("BUNDLE", "a bundle has another extension",
                {.file = out.string(), .expected = std::string("a name that ends in ") + kBundleExtension});
  const Json manifest = manifest_of(store, runs);
  BundleContents contents{.runs = runs};
  CompressedFile file(out);
  TarWriter tar([&](std::span<const std::byte> bytes) { file.write(bytes); });
  tar.add(kManifest, dump_utf8(manifest, 1) + "\n");
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string folder = folder_in_bundle(i);
    contents.names.push_back(manifest["runs"][i]["name"].get<std::string>());
    contents.events_of.push_back(0);
    tar.add(folder + "experiment.json", store.experiment(runs[i]).text());
    if (checkpoints == BundledCheckpoints::all)
      for (const BundledFile& one : checkpoint_files(store, runs[i])) {
        if (stop.stop_requested()) throw cancelled("the bundle");
        add_file(one, folder + "files/" + one.name, tar);
        ++contents.files;
        contents.bytes += one.bytes;
      }
    std::uint64_t bytes = 0;  // a tar file gives the size before the content
    store.read_events(runs[i], [&](const store::StoredEvent& stored) { bytes += event_line(stored.event).size(); });
    tar.begin(folder + "events.jsonl", bytes);
    store.read_events(runs[i], [&](const store::StoredEvent& stored) {
      tar.write(std::as_bytes(std::span(std::string_view(event_line(stored.event)))));
      ++contents.events_of.back();
    });
    if (stop.stop_requested()) throw cancelled("the bundle");
  }
  tar.finish();
  file.commit();
  return contents;
}

bool is_bundle(const fs::path& file) {
  if (!is_file(file) || file.extension() != ".zst") return false;
  try {
    data::DataFile data(file);
    TarReader tar([&](std::span<char> out) { return data.read(out); }, file.string());
    const auto first = tar.next();
    return first && first->name == kManifest;
  } catch (const Error&) {
    return false;
  }
}

BundleContents check_bundle(const fs::path& file) {
  BundleVisitor nothing;
  return BundleReader(file, nothing).read();
}

BundleContents import_bundle(store::Store& store, const fs::path& file) {
  RunRecorder recorder(store);
  try {
    BundleContents contents = BundleReader(file, recorder).read();
    contents.runs = recorder.created();
    return contents;
  } catch (...) {
    recorder.remove_all();
    throw;
  }
}

}  // namespace mw::importing
