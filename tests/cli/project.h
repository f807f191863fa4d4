// SPDX-License-Identifier: GPL-3.0-or-later
// A small project in a temporary folder: a random-weight Gemma 3 folder, a dataset, an experiment, a run store.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "tests/base/scratch.h"

namespace mw::test {

class Project {
 public:
  Project();
  ~Project();
  Project(const Project&) = delete;
  Project& operator=(const Project&) = delete;

  const Scratch scratch;
  const std::filesystem::path& folder = scratch.path();
  std::filesystem::path model, data, experiment, runs;
  // meshwright <command> experiment --runs-dir runs --json <more>
  std::vector<std::string> command(const std::string& name, std::vector<std::string> more = {}) const;
  void write_experiment(const Json& changes) const;  // merged into the default one
};

std::vector<Json> lines(const std::string& out);  // one JSON document per line
std::vector<double> metric(const std::vector<Json>& events, const std::string& name);
std::string bytes_of(const std::filesystem::path& file);

}  // namespace mw::test
