// SPDX-License-Identifier: Apache-2.0
#include "core/launch/target.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCommand = "{command}";
constexpr const char* kForms =
    "local, ssh:HOST, hosts:FILE, slurm[:HOST], skypilot[:CLUSTER], kubernetes[:NAMESPACE], a shipped template or a "
    "command with {command} in it";

[[noreturn]] void refuse(std::string_view text, const std::string& message, const std::string& expected,
                         const std::string& fix = {}) {
  throw Error("LAUNCH-TARGET", message,
              {.place = "--on", .found = std::string(text), .expected = expected, .fix = fix});
}

bool all_of(std::string_view text, std::string_view allowed) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || allowed.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Restricts the host name, because ssh and programs in its configuration may interpret other characters.
LaunchTarget ssh_target(std::string_view text) {
  LaunchTarget t{.where = Where::ssh, .text = std::string(text)};
  std::string_view rest = text.substr(text.find(':') + 1);
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos && rest.find(':') == colon) {
    t.port = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    const bool number = !t.port.empty() && t.port.size() <= 5 &&
                        std::all_of(t.port.begin(), t.port.end(), [](unsigned char c) { return std::isdigit(c); });
    if (!number || std::stoi(t.port) < 1 || std::stoi(t.port) > 65535)
      refuse(text, "invalid port", "a number from 1 to 65535");
  }
  t.host = rest;
  const size_t at = rest.find('@');
  const std::string_view name = at == std::string_view::npos ? rest : rest.substr(at + 1);
  if (name.empty() || at == 0 || rest.front() == '-' || name.front() == '-' || !all_of(rest, ".-_@:%"))
    refuse(text, "invalid host name", "letters, digits, dots and dashes, not starting with a dash",
           "define other names as Host in ~/.ssh/config");
  return t;
}

LaunchTarget hosts_target(std::string_view text) {
  const fs::path file(text.substr(text.find(':') + 1));
  if (!is_file(file))
    refuse(text, "the file of hosts does not exist", "a file with one [USER@]HOST[:PORT] on each line");
  return {
      .where = Where::local, .text = std::string(text), .launcher = Launcher::hosts, .hosts_file = fs::absolute(file)};
}

LaunchTarget slurm_target(std::string_view text) {
  LaunchTarget target =
      text == "slurm" ? LaunchTarget{.where = Where::local, .text = std::string(text)} : ssh_target(text);
  target.launcher = Launcher::slurm;
  return target;
}

LaunchTarget skypilot_target(std::string_view text) {
  LaunchTarget target{.where = Where::local, .text = std::string(text), .launcher = Launcher::skypilot};
  if (text == "skypilot") return target;
  target.cluster = text.substr(text.find(':') + 1);
  if (target.cluster.empty() || target.cluster.front() == '-' || !all_of(target.cluster, "-._"))
    refuse(text, "invalid name of a cluster", "letters, digits, dots and dashes, not starting with a dash");
  return target;
}

LaunchTarget kubernetes_target(std::string_view text) {
  LaunchTarget target{.where = Where::local, .text = std::string(text), .launcher = Launcher::kubernetes};
  if (text == "kubernetes") return target;
  target.name_space = text.substr(text.find(':') + 1);
  const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
  if (target.name_space.empty() || target.name_space.front() == '-' || !all_of(target.name_space, "-") ||
      std::any_of(target.name_space.begin(), target.name_space.end(), is_upper))
    refuse(text, "invalid name of a namespace", "small letters, digits and dashes, not starting with a dash");
  return target;
}

// Replaces each field in braces by on_field(name, fallback).
template <class OnField>
std::string expand(std::string_view text, const OnField& on_field) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('{'), close = text.find('}', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, open));
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const size_t equals = inside.find('=');
    out += on_field(std::string(inside.substr(0, equals)), equals == std::string_view::npos
                                                               ? std::nullopt
                                                               : std::optional(std::string(inside.substr(equals + 1))));
    text.remove_prefix(close + 1);
  }
  return out;
}

TargetTemplate read_template(const fs::path& file) {
  TargetTemplate t{.name = file.stem().string(), .about = {}, .command = {}, .fields = {}};
  const std::string content = read_file(file, 1 << 16);
  for (std::string_view text = content; !text.empty();) {
    const std::string_view line = take_line(text);
    if (line.starts_with("# "))
      t.about += (t.about.empty() ? "" : " ") + std::string(line.substr(2));
    else if (!line.empty())
      t.command += (t.command.empty() ? "" : " ") + std::string(line);
  }
  expand(t.command, [&](const std::string& name, const std::optional<std::string>& fallback) {
    if (name != "command") t.fields.push_back({name, fallback});
    return std::string();
  });
  return t;
}

std::map<std::string, std::string> values_of(std::string_view text, std::string_view values) {
  std::map<std::string, std::string> out;
  while (!values.empty()) {
    const std::string_view one = values.substr(0, values.find(','));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0)
      refuse(text, "a field of the template has no value", "NAME:field=value,field=value");
    out[std::string(one.substr(0, equals))] = one.substr(equals + 1);
    values.remove_prefix(std::min(values.size(), one.size() + 1));
  }
  return out;
}

LaunchTarget from_template(std::string_view text, const TargetTemplate& t, std::string_view given) {
  std::map<std::string, std::string> values = values_of(text, given);
  LaunchTarget target{.where = Where::command, .text = std::string(text)};
  const bool has_worker =
      std::any_of(t.fields.begin(), t.fields.end(), [](const auto& f) { return f.name == "worker"; });
  if (const auto workers = values.find("workers");
      has_worker && workers != values.end() && !values.contains("worker")) {
    const std::string& number = workers->second;
    if (number.empty() || number.size() > 4 || number.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(number) < 1)
      refuse(text, "invalid number of workers", "a number from 1 to 9999");
    target.where = Where::local;
    target.launcher = Launcher::hosts;
    target.workers = std::stoi(number);
    values.erase(workers);
  }
  target.command = expand(t.command, [&](const std::string& name, const std::optional<std::string>& fallback) {
    if (name == "command") return std::string(kCommand);
    if (name == "worker" && target.workers > 0) return std::string("{worker}");
    const auto value = values.find(name);
    if (value == values.end() && !fallback)
      refuse(text, "a field of the template is missing", name, "add it: " + t.name + ":" + name + "=...");
    std::string word = value == values.end() ? *fallback : value->second;
    if (word.empty() || word.front() == '-' || word.find(kCommand) != std::string::npos)
      refuse(text, "a field of the template has an invalid value", name + ", not starting with a dash");
    if (value != values.end()) values.erase(value);
    return shell_quoted(word);
  });
  if (!values.empty()) {
    refuse(text, "the template has no field " + values.begin()->first,
           joined(t.fields, ", ", [](const auto& field) { return field.name; }));
  }
  return target;
}

}  // namespace

std::vector<TargetTemplate> load_templates(const fs::path& folder) {
  std::vector<TargetTemplate> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".txt") out.push_back(read_template(entry.path()));
  std::sort(out.begin(), out.end(), [](const TargetTemplate& a, const TargetTemplate& b) { return a.name < b.name; });
  return out;
}

LaunchTarget parse_target(std::string_view text, const fs::path& templates_folder) {
  if (text.find('\0') != std::string_view::npos || text.find('\n') != std::string_view::npos)
    refuse(escape_markdown(text), "the target has more than one line", kForms);
  if (text == "local") return {.where = Where::local, .text = "local"};
  if (text.starts_with("ssh:")) return ssh_target(text);
  if (text.starts_with("hosts:")) return hosts_target(text);
  if (text == "slurm" || text.starts_with("slurm:")) return slurm_target(text);
  if (text == "skypilot" || text.starts_with("skypilot:")) return skypilot_target(text);
  if (text == "kubernetes" || text.starts_with("kubernetes:")) return kubernetes_target(text);
  if (text.find(kCommand) != std::string_view::npos)
    return {.where = Where::command, .text = std::string(text), .host = {}, .port = {}, .command = std::string(text)};
  const std::string_view name = text.substr(0, text.find(':'));
  const std::vector<TargetTemplate> templates = load_templates(templates_folder);
  for (const TargetTemplate& t : templates)
    if (t.name == name)
      return from_template(text, t, name.size() == text.size() ? std::string_view() : text.substr(name.size() + 1));
  refuse(text, "unknown target", kForms,
         "shipped templates: " + joined(templates, ", ", [](const auto& t) { return t.name; }));
}

std::string start_command(const LaunchTarget& target) {
  switch (target.launcher) {
    case Launcher::hosts: {
      if (target.workers > 0)
        return "exec python3 on_hosts.py --workers " + std::to_string(target.workers) + " --reach " +
               shell_quoted(target.command);
      std::string command = "exec python3 on_hosts.py " + shell_quoted(target.hosts_file.string());
      if (!target.ssh_config.empty()) command += " --ssh-config " + shell_quoted(target.ssh_config.string());
      return command;
    }
    case Launcher::slurm:
      return "exec ./slurm.sh";
    case Launcher::skypilot:
      return "exec ./sky.sh" + (target.cluster.empty() ? std::string() : " --cluster " + target.cluster);
    case Launcher::kubernetes:
      return "exec ./jobset.sh" + (target.name_space.empty() ? std::string() : " --namespace " + target.name_space);
    default:
      return "./launch.sh";
  }
}

std::vector<std::string> command_line(const LaunchTarget& target, const std::string& script) {
  // One word in single quotes, which every login shell accepts.
  const std::string word = "exec sh -c " + shell_quoted(script);
  if (target.where == Where::local) return {"sh", "-c", script};
  if (target.where == Where::ssh) {
    // Disables prompts and closes silent connections.
    std::vector<std::string> out{"ssh", "-T",
                                 "-o",  "BatchMode=yes",
                                 "-o",  "ConnectTimeout=20",
                                 "-o",  "ServerAliveInterval=15",
                                 "-o",  "ServerAliveCountMax=2"};
    if (!target.ssh_config.empty()) out.insert(out.end(), {"-F", target.ssh_config.string()});
    if (!target.port.empty()) out.insert(out.end(), {"-p", target.port});
    out.insert(out.end(), {"--", target.host, word});
    return out;
  }
  std::string command;
  for (size_t at = 0; at < target.command.size();) {
    const size_t next = std::min(target.command.find(kCommand, at), target.command.size());
    command.append(target.command, at, next - at);
    if (next == target.command.size()) break;
    command += shell_quoted(word);
    at = next + kCommand.size();
  }
  return {"sh", "-c", command};
}

}  // namespace mw::launch
