// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/data_set.hpp>

#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/own_files.hpp>
#include <orrery/storage/internal/set_files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;
using detail::tidy_path;

data_set_info info_for(const std::string& path, const data_set_description& d) {
  data_set_info info;
  info.path = tidy_path(path);
  info.shape = d.shape;
  info.page_shape = d.page_shape;
  info.type = d.type;
  info.checksums = d.checksums;
  info.attributes = d.attributes;
  info.id = d.id != 0 ? d.id : internal::new_id();
  info.edition = internal::new_id();
  const std::string name = fs::path(info.path).filename().string();
  if (d.folders.empty()) {
    info.files.push_back(info.path + "/device-0.pages");
    info.hosts.emplace_back();
  }
  for (std::size_t i = 0; i < d.folders.size(); ++i) {
    const auto [host, folder] = internal::parse_given_folder(d.folders[i]);
    const bool own = host.empty() && folder == info.path;
    info.files.push_back(own ? fmt::format("{}/device-{}.pages", folder, i)
                             : fmt::format("{}/{}-{}.pages", folder, name, i));
    info.hosts.push_back(host);
    if (!own) internal::require_text(info.files.back());
  }
  return info;
}

// The paths of each device. In a world of several machines, one on the machine of its file: those
// that are wished, else all, in turn.
std::vector<std::uint32_t> pes_for(const std::vector<std::uint32_t>& machines,
                                   const std::vector<std::uint32_t>& wished) {
  std::vector<std::uint32_t> all;
  if (world_machines() == 1) {
    for (std::uint32_t i = 0; i < machines.size(); ++i)
      all.push_back(wished.empty() ? (this_pe() + i) % world_pes() : wished[i % wished.size()]);
    return all;
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> turns;
  for (const std::uint32_t m : machines) {
    std::vector<std::uint32_t>& turn = turns[m];
    if (turn.empty()) {
      const std::vector<std::uint32_t> there = internal::pes_of_machine(m);
      std::ranges::copy_if(wished, std::back_inserter(turn),
                           [&](std::uint32_t pe) { return std::ranges::count(there, pe) != 0; });
      if (turn.empty()) turn = there;
      if (turn.empty()) throw node_lost(fmt::format("all nodes of machine({})", m));
    }
    all.push_back(turn.front());
    std::ranges::rotate(turn, std::next(turn.begin()));
  }
  return all;
}

// Nodes that are not alone on their machine.
std::vector<std::uint32_t> sharing_nodes() {
  std::vector<std::uint32_t> all;
  for (std::uint32_t m = 0; m < world_machines(); ++m) {
    const auto there = internal::nodes_of_machine(m);
    if (there.size() > 1) all.insert(all.end(), there.begin(), there.end());
  }
  return all;
}

}  // namespace

data_set::data_set(std::string path, const data_set_description& description, const data_set_options& options)
    : info_(info_for(path, description)), map_(description.map), writable_(true) {
  const page_grid grid = page_grid::checked(info_.shape, info_.page_shape);
  const auto devices = static_cast<std::uint32_t>(info_.files.size());
  if (!map_) map_ = circulant_map(grid.pages(), devices);
  if (map_->pages() != grid.pages() || map_->devices() != devices)
    throw std::invalid_argument(fmt::format("the page map is for {} pages on {} devices, and {} has {} pages on {}",
                                            to_string(map_->pages()), map_->devices(), info_.path,
                                            to_string(grid.pages()), devices));
  info_.map = map_->kind();
  for (std::uint32_t d = 0; d < devices; ++d) info_.pages.push_back(map_->pages_on(d));
  if (fs::exists(internal::header_path(info_.path)))
    throw_errno(EEXIST, fmt::format("there is a data set at {} already: open it, or remove it first", info_.path));

  internal::set_files files(info_);
  files.make_folders();
  files.require_absent();
  internal::write_header(info_, map_, true);  // from here on the place is ours
  files.claim();
  make_devices(options, open_mode::create, files.machines());
  files.keep();
}

data_set::data_set(std::string path, const data_set_options& options) {
  info_ = internal::read_header(tidy_path(path), &map_);
  if (options.mode == open_mode::create)
    throw std::invalid_argument(fmt::format("to create the data set {}, say of what shape and type it is", path));
  internal::require_intact(info_);
  internal::set_files files(info_);
  files.require_regular();
  writable_ = options.mode == open_mode::read_write;
  if (!writable_ && !info_.finished && !options.unfinished)
    throw_errno(EBADMSG, fmt::format("the data set {} is unfinished: a program that writes it is still at work, or was "
                                     "interrupted: wait for it, run it again, or open with `unfinished` what there is",
                                     info_.path));
  make_devices(options, options.mode, files.machines());
  if (!writable_) return;
  try {
    info_.edition = options.edition != 0 ? options.edition : internal::new_id();
    mark(false);
  } catch (...) {
    end_devices();
    throw;
  }
}

std::vector<std::string> data_set_info::folders() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < files.size(); ++i)
    all.push_back(internal::folder_text(i < hosts.size() ? hosts[i] : "", fs::path(files[i]).parent_path().string()));
  return all;
}

data_set::~data_set() { end_devices(); }

data_set_info data_set::read_info(const std::string& path) { return internal::read_header(tidy_path(path), nullptr); }

void data_set::remove(const std::string& path) {
  const data_set_info info = internal::read_header(tidy_path(path), nullptr);
  internal::require_intact(info);
  internal::set_files files(info);
  files.require_removable();
  files.remove_files();
  for (const auto& e : fs::directory_iterator(info.path))  // of programs that were killed
    if (internal::is_unfinished_header(e.path().filename().string())) internal::unlink_file(e.path().string());
  internal::unlink_file(internal::header_path(info.path));
  files.remove_folders();
}

void data_set::require_removable(const std::string& path) {
  const data_set_info info = internal::read_header(tidy_path(path), nullptr);
  internal::require_intact(info);
  internal::set_files(info).require_removable();
}

void data_set::make_devices(const data_set_options& options, open_mode mode,
                            const std::vector<std::uint32_t>& machines) {
  const auto sharing = options.on_each_node ? sharing_nodes() : std::vector<std::uint32_t>{};
  const cache_options cache = options.on_each_node ? cache_options{0, 0} : options.cache;
  const std::vector<std::uint32_t> pes = pes_for(machines, options.pes);
  std::vector<future<remote<array_device>>> started;
  for (std::size_t i = 0; i < info_.files.size(); ++i)
    started.push_back(start_spawn<array_device>(pe(pes[i]), info_.files[i], info_.pages[i], info_.page_shape,
                                                info_.type, options_of(i, options, mode, sharing.empty()), cache));
  take(started);
  array_ = array({info_.shape, info_.page_shape}, info_.type, map_,
                 std::vector<remote<array_page_device>>(devices_.begin(), devices_.end()));
  if (!sharing.empty()) make_devices_on_nodes(sharing, options, mode, machines);
}

// Such a node has devices of its own for the files of its machine. Those of other machines it
// shares with all.
void data_set::make_devices_on_nodes(const std::vector<std::uint32_t>& sharing, const data_set_options& options,
                                     open_mode mode, const std::vector<std::uint32_t>& machines) {
  const open_mode as = mode == open_mode::read_only ? mode : open_mode::beside;
  std::vector<future<remote<array_device>>> started;
  std::vector<std::pair<std::uint32_t, std::size_t>> made;  // node, file
  for (const std::uint32_t n : sharing) {
    for (std::size_t i = 0; i < info_.files.size(); ++i) {
      if (machines[i] != internal::machine_of_node(n)) continue;
      started.push_back(start_spawn<array_device>(node(n), info_.files[i], info_.pages[i], info_.page_shape, info_.type,
                                                  options_of(i, options, as, false), cache_options{0, 0}));
      made.emplace_back(n, i);
    }
  }
  take(started);
  const auto first = devices_.begin() + std::ssize(info_.files);
  std::vector<std::vector<remote<array_page_device>>> on_nodes(world_nodes(), {devices_.begin(), first});
  for (std::size_t k = 0; k < made.size(); ++k)
    on_nodes.at(made[k].first)[made[k].second] = first[static_cast<std::ptrdiff_t>(k)];
  array_.set_devices_on_nodes(std::move(on_nodes));
}

device_options data_set::options_of(std::size_t file, const data_set_options& options, open_mode mode,
                                    bool alone) const {
  return {mode,
          options.transfers,
          options.depth,
          info_.checksums ? internal::sums_of(info_.files[file]) : "",
          alone,
          info_.id,
          static_cast<std::uint32_t>(file) + 1};
}

// Devices that are being made. If one cannot be, all are ended.
void data_set::take(std::vector<future<remote<array_device>>>& started) {
  std::exception_ptr error;
  for (auto& f : started) {
    try {
      devices_.push_back(f.get());
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  if (error == nullptr) return;
  end_devices();
  std::rethrow_exception(error);
}

void data_set::end_devices() noexcept {
  // Closed first: when this returns, the files are free for whoever opens them next.
  for (const auto& d : devices_) {
    try {
      d->close();
    } catch (const error&) {
      // It is gone, or the world ends: then it has written, or writes, what it has.
    } catch (const std::exception& e) {
      const std::string line = fmt::format("orrery: the data set {}: {}\n", info_.path, e.what());
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
  }
  try {
    for (const auto& d : std::exchange(devices_, {})) destroy(d);
  } catch (const std::exception&) {  // gone already
  }
}

void data_set::mark(bool finished) {
  data_set_info next = info_;
  next.finished = finished;
  internal::write_header(next, map_);
  info_ = std::move(next);
}

void data_set::flush() { array_.flush(); }

void data_set::finish() {
  if (!writable_)
    throw_errno(EROFS, fmt::format("the data set {} was opened read-only: it cannot be finished", info_.path));
  take_writes(false);
  try {
    array_.flush();
    mark(true);
  } catch (...) {
    take_writes(true);
    throw;
  }
}

void data_set::reopen() {
  if (!writable_)
    throw_errno(EROFS, fmt::format("the data set {} was opened read-only: open it with read_write", info_.path));
  if (info_.finished) {
    info_.edition = internal::new_id();
    mark(false);
  }
  take_writes(true);
}

void data_set::take_writes(bool taken) {
  for (const auto& d : devices_) d->take_writes(taken);
}

std::vector<page_damage> data_set::verify() { return verify_part(domain::of_shape(array_.grid().pages())); }

std::vector<page_damage> data_set::verify_part(const domain& pages) {
  const domain all = domain::of_shape(array_.grid().pages());
  if (!all.contains(pages))
    throw std::out_of_range(fmt::format("the pages {} of {}, which has {}", to_string(pages), info_.path,
                                        to_string(array_.grid().pages())));
  if (writable_) array_.flush();
  struct asked {
    index3 page;
    future<std::string> answer;
  };
  std::deque<asked> under_way;
  std::vector<page_damage> found;
  const auto take = [&] {
    asked a = std::move(under_way.front());
    under_way.pop_front();
    if (std::string what = a.answer.get(); !what.empty()) found.push_back({a.page, std::move(what)});
  };
  const std::size_t most = 16 * info_.files.size();
  for_each_place(pages, [&](const index3& page) {
    const page_address at = map_->locate(page);
    under_way.push_back({page, start(devices_[at.device])->damage_of(at.index)});
    if (under_way.size() >= most) take();
  });
  while (!under_way.empty()) take();
  return found;
}

}  // namespace orrery::storage
