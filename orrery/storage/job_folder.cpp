// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/job_folder.hpp>

#include <orrery/process/placement.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/detail/page_file.hpp>
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/job_data.hpp>
#include <orrery/storage/internal/job_presence.hpp>
#include <orrery/storage/internal/path_text.hpp>
#include <orrery/storage/internal/patience.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;

constexpr const char* description_file = "job.json";
constexpr const char* removed_file = "job.removed";  // the description, while the folder is removed
constexpr const char* finished_file = "finished";
constexpr const char* lock_file = "lock";
constexpr const char* nodes_file = "nodes";
constexpr auto poll_interval = std::chrono::milliseconds(10);

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}
void write_text(const std::string& file, const std::string& text) {
  try {
    const io::descriptor f(file, O_WRONLY | O_CREAT | O_TRUNC);
    io::write_all(f.get(), std::as_bytes(std::span(text)), 0);
  } catch (const std::system_error& e) {
    throw_errno(e.code().value(), fmt::format("cannot write {}", file));
  }
}

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}
// NFS keeps a file that is removed while it is open by such a name, until it is closed.
bool is_of_nfs(const std::string& name) { return name.starts_with(".nfs"); }

// Names that jobs give to what they keep, between data sets included.
bool is_name_of_jobs(std::string name, const std::string& target) {
  constexpr std::string_view names[] = {description_file, removed_file,  lock_file,  nodes_file, "progress",
                                        "made",           finished_file, "input-id", "output-id"};
  if (name.ends_with(".new")) name.resize(name.size() - 4);
  const std::string set = fs::path(target).filename().string();
  return is_of_nfs(name) || std::ranges::find(names, name) != std::end(names) || name == set + "-scratch" ||
         name == set + "-second";
}
bool holds_only_names_of_jobs(const fs::path& folder, const std::string& target) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    if (!is_name_of_jobs(at->path().filename().string(), target)) return false;
  if (error && error != std::errc::no_such_file_or_directory)
    throw_errno(error.value(), fmt::format("cannot read the folder {}, where progress is kept", folder.string()));
  return true;
}

// Programs make the lock first, then the description of their job, and remove them in the other
// order. So where both are it is a job's, whatever steps the job may have noted. (If it is another
// job, nothing is removed.) Otherwise all names must be those of jobs: a program may have been
// killed before its job began, or, in former versions, while it removed the folder in any order.
bool is_foreign(const fs::path& folder, const std::string& target) {
  const fs::path lock = folder / lock_file;
  const auto is_job = [&] {
    struct stat st{};
    const bool locked = ::lstat(lock.c_str(), &st) == 0;
    if (locked && !(S_ISREG(st.st_mode) && st.st_size == 0)) return false;
    if (locked && (is_there(folder / description_file) || is_there(folder / removed_file))) return true;
    return holds_only_names_of_jobs(folder, target);
  };
  if (is_there(internal::header_path(folder))) return true;
  return !is_job() && !is_job();  // a program may have begun between the first looks and the list
}

// The description goes first, at once: after a kill amid the rest nothing seems to have begun. Its
// new name says until the end that all of it was a job's.
void remove_all_but(const std::string& folder, std::initializer_list<std::string_view> kept, std::error_code& error) {
  const std::string removed = folder + "/" + removed_file;
  fs::rename(folder + "/" + description_file, removed, error);
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != removed_file && !is_of_nfs(name) && std::ranges::find(kept, name) == kept.end())
      fs::remove_all(at->path(), error);
    if (error) return;
  }
  if (!error) fs::remove(removed, error);
}
void remove_folder(const std::string& folder, std::error_code& error) {
  remove_all_but(folder, {lock_file}, error);
  if (!error) fs::remove(folder + "/" + lock_file, error);
  std::error_code taken_again;  // another program has its lock there by now
  if (!error) fs::remove(folder, taken_again);
  if (error == std::errc::no_such_file_or_directory) error.clear();
}

// Its description says so.
bool works_on(const fs::path& folder, const fs::path& target) {
  std::error_code not_ours;
  if (!fs::exists(folder / lock_file, not_ours) || !fs::exists(folder / description_file, not_ours)) return false;
  const auto j = nlohmann::json::parse(text_of(folder / description_file), nullptr, false);
  return j.is_object() && j.contains("output") && j.at("output") == internal::path_text(target);
}

}  // namespace

job_folder::job_folder(std::string path, std::string target) : path_(std::move(path)), target_(std::move(target)) {
  while (!take_lock()) continue;
  try {
    await_nodes();
    join_nodes();
  } catch (...) {
    leave();
    throw;
  }
}

// False: it was taken from under our hands, by a program that has ended with its job.
bool job_folder::take_lock() {
  using clock = std::chrono::steady_clock;
  // of a program that seems to live: it may have been killed just now
  constexpr auto grace = std::chrono::seconds(1);
  std::error_code error;
  const bool made = fs::create_directory(path_, error);
  if (error) throw_errno(error.value(), fmt::format("cannot make the folder {}, where progress is kept", path_));
  if (!made && is_foreign(path_, target_))
    throw_errno(EEXIST, fmt::format("{} is where the progress of a job on {} is kept, and there is something else: "
                                    "move that away, or choose another name for the output",
                                    path_, target_));
  const std::string file = *this / lock_file;
  // A former version was killed while it removed the folder: the job is done, and parts of the
  // account may have gone.
  if (!made && !is_there(file)) fs::remove(about(), error);
  try {
    lock_ = io::descriptor(file, O_RDWR | O_CREAT);
  } catch (const std::system_error& e) {
    if (e.code().value() == ENOENT) return false;
    throw;
  }
  clock::time_point ending_at = clock::now();  // when it was last seen to end
  internal::patience waiting;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno(errno, fmt::format("cannot lock {}", file));
    const internal::job_nodes who = internal::look_at_nodes(*this / nodes_file);
    if (who.complete && !who.ending) {
      if (who.own || clock::now() - ending_at > grace)
        throw_errno(EBUSY, fmt::format("another program is at work on {}: wait until it has ended", target_));
    } else {
      ending_at = clock::now();
      waiting.say([&] {
        return fmt::format("a program that was at work on {} to come to its end ({})", target_,
                           who.text.empty() ? "it has lost its nodes" : who.text);
      });
    }
    sleep_for(poll_interval);
  }
  return has_lock();
}

// False: the folder was removed, and may be another program's by now.
bool job_folder::has_lock() const noexcept {
  struct stat ours{};
  struct stat there{};
  const std::string file = path_ + "/" + lock_file;
  return ::fstat(lock_.get(), &ours) == 0 && ::stat(file.c_str(), &there) == 0 && ours.st_ino == there.st_ino;
}

// Nodes of a program whose first one was killed.
void job_folder::await_nodes() {
  const std::string file = *this / nodes_file;
  const io::descriptor all(file, O_RDWR | O_CREAT);
  internal::patience waiting;
  while (::flock(all.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    waiting.say([&] {
      return fmt::format("nodes of a program that was killed, and that may still write {}, to end ({})", target_,
                         internal::look_at_nodes(file).text);
    });
    sleep_for(poll_interval);
  }
  internal::announce_nodes(all.get(), static_cast<std::uint32_t>(internal::nodes_of_machine(this_machine()).size()));
  // A request that is done may hold the file, and with it the lock, for some moments after the file
  // is closed.
  (void)::flock(all.get(), LOCK_UN);
}

void job_folder::join_nodes() {
  const std::string file = *this / nodes_file;
  nodes_ = internal::job_presence::share(file);
  std::vector<future<remote<internal::job_presence>>> started;
  // Nodes of other machines have no files here; what they write there is locked by devices, which
  // live there.
  for (const std::uint32_t n : internal::nodes_of_machine(this_machine()))
    if (n != this_node()) started.push_back(start_spawn<internal::job_presence>(node(n), file));
  for (auto& f : started) others_.push_back(f.get());
}

job_folder::~job_folder() { leave(); }

void job_folder::leave() noexcept {
  std::error_code ignored;
  if (has_lock() && !fs::exists(about(), ignored)) remove_folder(path_, ignored);
  for (const auto& p : others_) {
    try {
      destroy(p);
    } catch (const std::exception&) {  // its node has gone, or the world ends, and the lock with it
    }
  }
}

std::string job_folder::about() const { return *this / description_file; }
bool job_folder::begun(const std::string& description, const std::string& advice) const {
  if (!fs::exists(about())) return false;
  if (text_of(about()) == description) return true;
  if (finished()) return false;  // and its program was killed before it could remove the folder
  throw std::invalid_argument(fmt::format(
      "a job that was interrupted has begun {}, and was another one than this (or had another plan): run that "
      "command again, or {}",
      target_, advice.empty() ? fmt::format("remove {} to forget it", path_) : advice));
}
void job_folder::begin(const std::string& description) { note(description_file, description); }

bool job_folder::passed(const std::string& step) const { return fs::exists(*this / step); }
void job_folder::note(const std::string& name, const std::string& text) {
  write_text(*this / (name + ".new"), text);
  fs::rename(*this / (name + ".new"), *this / name);
}
std::optional<std::string> job_folder::noted(const std::string& name) const {
  const std::string file = *this / name;
  return fs::exists(file) ? std::optional(text_of(file)) : std::nullopt;
}

void job_folder::clear() {
  std::error_code error;
  remove_all_but(path_, {lock_file, nodes_file}, error);
  if (error) throw_errno(error.value(), fmt::format("cannot empty the folder {}", path_));
}
void job_folder::finish(const std::string& result) { note(finished_file, result); }
std::optional<std::string> job_folder::finished() const { return noted(finished_file); }
// Another program may have found the job done, and be about to say so. It removes the folder at its
// end.
void job_folder::remove(const std::string& path) {
  const int lock = ::open((path + "/" + lock_file).c_str(), O_RDWR | O_CLOEXEC);
  const io::descriptor held(lock);
  if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
      !internal::look_at_nodes(path + "/" + nodes_file).own)
    return;
  std::error_code error;
  remove_folder(path, error);
  if (error) throw_errno(error.value(), fmt::format("cannot remove the folder {}", path));
}

std::size_t job_folder::forget(const std::string& target) {
  const fs::path wanted(detail::tidy_path(target));
  std::vector<fs::path> found;
  std::error_code nobody_there;
  for (const auto& e : fs::directory_iterator(wanted.parent_path(), nobody_there))
    if (e.path().filename().string().starts_with(wanted.filename().string() + ".") && works_on(e.path(), wanted))
      found.push_back(e.path());
  for (const fs::path& folder : found) {
    const job_folder mine(folder, wanted);
    std::vector<fs::path> between;
    for (const auto& e : fs::directory_iterator(folder))
      if (e.is_directory()) between.push_back(e.path());
    for (const fs::path& set : between) internal::remove_remains(set);
    remove(folder);
  }
  // its program was killed before the output had a header
  if (!found.empty() && internal::holds_nothing_yet(wanted)) fs::remove_all(wanted);
  return found.size();
}

}  // namespace orrery::storage
