// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/data_set.hpp>

#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/own_files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <set>
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

std::string sums_of(const std::string& file) { return fs::path(file).replace_extension(".sums").string(); }

// Removes again what was made, unless all went well.
class maker {
 public:
  maker() = default;
  maker(const maker&) = delete;
  maker& operator=(const maker&) = delete;
  ~maker() {
    std::error_code ignored;
    for (; !made_.empty(); made_.pop_back()) fs::remove(made_.back(), ignored);  // a folder only if it is empty
  }
  void folder(const std::string& path) {
    std::error_code error;
    if (fs::create_directory(path, error)) {
      made_.push_back(path);
    } else if (error) {
      const int code = error.value();
      const bool refused = code == EACCES || code == EPERM || code == EROFS;
      throw_errno(
          code,
          fmt::format("cannot make the folder {}{}", path,
                      refused ? "; the one around it may only be read: choose another place, or change its permissions"
                      : code == ENOENT ? "; make the one around it first"
                                       : ""));
    }
  }
  void will_make(const std::string& file) { made_.push_back(file); }
  void keep_all() { made_.clear(); }

 private:
  std::vector<std::string> made_;
};

data_set_info info_for(const std::string& path, const data_set_description& d) {
  data_set_info info;
  info.path = tidy_path(path);
  info.shape = d.shape;
  info.page_shape = d.page_shape;
  info.type = d.type;
  info.checksums = d.checksums;
  info.attributes = d.attributes;
  info.id = internal::new_id();
  const std::string name = fs::path(info.path).filename().string();
  if (d.folders.empty()) info.files.push_back(info.path + "/device-0.pages");
  for (std::size_t i = 0; i < d.folders.size(); ++i) {
    const std::string folder = tidy_path(d.folders[i]);
    info.files.push_back(folder == info.path ? fmt::format("{}/device-{}.pages", folder, i)
                                             : fmt::format("{}/{}-{}.pages", folder, name, i));
  }
  return info;
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

  maker made;
  made.folder(info_.path);
  for (const std::string& file : info_.files) made.folder(fs::path(file).parent_path().string());
  for (const std::string& file : info_.files) {
    for (const std::string& f : {file, sums_of(file)})
      if (fs::exists(f))
        throw_errno(EEXIST, fmt::format("cannot create the data set {}: its file {} is there already: remove it first",
                                        info_.path, f));
  }
  internal::write_header(info_, map_, true);  // from here on the place is ours
  made.will_make(internal::header_path(info_.path));
  for (const std::string& file : info_.files) {
    made.will_make(file);
    if (info_.checksums) made.will_make(sums_of(file));
  }
  make_devices(options, open_mode::create);
  made.keep_all();
}

data_set::data_set(std::string path, const data_set_options& options) {
  info_ = internal::read_header(tidy_path(path), &map_);
  if (options.mode == open_mode::create)
    throw std::invalid_argument(fmt::format("to create the data set {}, say of what shape and type it is", path));
  internal::require_intact(info_);
  for (const std::string& file : info_.files) internal::require_regular(file);
  writable_ = options.mode == open_mode::read_write;
  if (!writable_ && !info_.finished && !options.unfinished)
    throw_errno(EBADMSG, fmt::format("the data set {} is unfinished: a program that writes it is still at work, or was "
                                     "interrupted: wait for it, run it again, or open with `unfinished` what there is",
                                     info_.path));
  make_devices(options, options.mode);
  if (!writable_) return;
  try {
    mark(false);
  } catch (...) {
    end_devices();
    throw;
  }
}

data_set::~data_set() { end_devices(); }

data_set_info data_set::read_info(const std::string& path) { return internal::read_header(tidy_path(path), nullptr); }

void data_set::remove(const std::string& path) {
  const data_set_info info = internal::read_header(tidy_path(path), nullptr);
  internal::require_intact(info);
  std::set<std::string> folders{info.path};
  for (const std::string& file : info.files) {
    internal::require_own(info, file, sums_of(file));
    folders.insert(fs::path(file).parent_path().string());
  }
  for (const std::string& folder : folders) internal::require_no_link(folder);
  for (const std::string& file : info.files) {
    if (!fs::is_regular_file(fs::symlink_status(file))) continue;  // an interrupted removal
    const page_file lock(file, 0, 1, open_mode::read_write, transfer_mode::buffered);  // throws while somebody writes
  }
  for (const std::string& file : info.files) {
    internal::unlink_file(file);
    internal::unlink_file(sums_of(file));
  }
  internal::unlink_file(internal::header_path(info.path));
  for (const std::string& folder : folders) (void)::rmdir(folder.c_str());  // refused where something else is in it
}

void data_set::make_devices(const data_set_options& options, open_mode mode) {
  const std::uint32_t nodes = options.on_each_node && world_machines() == 1 ? world_nodes() : 1;
  const cache_options cache = options.on_each_node ? cache_options{0, 0} : options.cache;
  std::vector<future<remote<array_device>>> started;
  for (std::size_t i = 0; i < info_.files.size(); ++i) {
    const std::uint32_t at = options.pes.empty() ? (this_pe() + static_cast<std::uint32_t>(i)) % world_pes()
                                                 : options.pes[i % options.pes.size()];
    started.push_back(start_spawn<array_device>(pe(at), info_.files[i], info_.pages[i], info_.page_shape, info_.type,
                                                options_of(i, options, mode, nodes == 1), cache));
  }
  take(started);
  array_ = array({info_.shape, info_.page_shape}, info_.type, map_,
                 std::vector<remote<array_page_device>>(devices_.begin(), devices_.end()));
  if (nodes > 1) make_devices_on_nodes(options, mode);
}

void data_set::make_devices_on_nodes(const data_set_options& options, open_mode mode) {
  const open_mode as = mode == open_mode::read_only ? mode : open_mode::beside;
  const std::uint32_t nodes = world_nodes();
  std::vector<future<remote<array_device>>> started;
  for (std::uint32_t n = 0; n < nodes; ++n)
    for (std::size_t i = 0; i < info_.files.size(); ++i)
      started.push_back(start_spawn<array_device>(node(n), info_.files[i], info_.pages[i], info_.page_shape, info_.type,
                                                  options_of(i, options, as, false), cache_options{0, 0}));
  take(started);
  std::vector<std::vector<remote<array_page_device>>> on_nodes;
  for (auto next = devices_.begin() + std::ssize(info_.files); next != devices_.end(); next += std::ssize(info_.files))
    on_nodes.emplace_back(next, next + std::ssize(info_.files));
  array_.set_devices_on_nodes(std::move(on_nodes));
}

device_options data_set::options_of(std::size_t file, const data_set_options& options, open_mode mode,
                                    bool alone) const {
  return {mode, options.transfers, options.depth, info_.checksums ? sums_of(info_.files[file]) : "", alone, info_.id};
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
  array_.flush();
  mark(true);
}

void data_set::reopen() {
  if (!writable_)
    throw_errno(EROFS, fmt::format("the data set {} was opened read-only: open it with read_write", info_.path));
  if (info_.finished) mark(false);
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
