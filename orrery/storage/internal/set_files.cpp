// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/set_files.hpp>

#include <orrery/process/machines.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/own_files.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>

namespace orrery::storage::internal {
namespace {

void add_once(std::vector<std::string>& all, const std::string& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

}  // namespace

set_files::set_files(const data_set_info& info) : info_(info) {
  const bool named = std::ranges::any_of(info.hosts, [](const std::string& h) { return !h.empty(); });
  const std::uint32_t own = named ? this_machine() : 0;
  const std::vector<std::string> names = named ? machine_names() : std::vector<std::string>{};
  places_.push_back({.machine = own, .folders = {info.path}, .here = wire::make_unique<file_agent>()});
  for (std::size_t i = 0; i < info.files.size(); ++i) {
    const std::string folder = std::filesystem::path(info.files[i]).parent_path().string();
    machines_.push_back(named ? machine_named(names, info.hosts[i], folder, info.path) : own);
    auto at = std::ranges::find(places_, machines_.back(), &place::machine);
    if (at == places_.end()) {
      places_.push_back({.machine = machines_.back()});
      at = std::prev(places_.end());
      at->there = spawn<file_agent>(machine(at->machine), info.hosts[i]);
    }
    at->files.push_back(info.files[i]);
    add_once(at->folders, folder);
  }
}

set_files::~set_files() {
  for (const place& p : places_) {
    try {
      if (p.there) destroy(p.there);
    } catch (const std::exception&) {  // its node has gone, or the world ends
    }
  }
}

template <class F>
void set_files::each(F&& f) {
  for (place& p : places_) p.here ? f(p.here, p) : f(p.there, p);
}

void set_files::make_folders() {
  each([](auto& agent, const place& p) { agent->make_folders(p.folders); });
}
void set_files::require_absent() {
  each([this](auto& agent, const place& p) { agent->require_absent(info_.path, p.files); });
}
void set_files::claim() {
  places_.front().here->claim({header_path(info_.path)});
  each([this](auto& agent, const place& p) {
    std::vector<std::string> all;
    for (const std::string& file : p.files) {
      all.push_back(file);
      if (info_.checksums) all.push_back(sums_of(file));
    }
    agent->claim(all);
  });
}
void set_files::keep() {
  each([](auto& agent, const place&) { agent->keep(); });
}
void set_files::require_regular() {
  each([](auto& agent, const place& p) { agent->require_regular(p.files); });
}
void set_files::require_removable() {
  require_no_link(info_.path);
  require_unlinkable(header_path(info_.path));
  each([this](auto& agent, const place& p) { agent->require_removable(info_, p.files); });
}
void set_files::remove_files() {
  each([](auto& agent, const place& p) { agent->remove_files(p.files); });
}
void set_files::remove_folders() {
  each([](auto& agent, const place& p) { agent->remove_folders(p.folders); });
}

}  // namespace orrery::storage::internal
