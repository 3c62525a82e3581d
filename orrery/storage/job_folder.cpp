// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/job_folder.hpp>

#include <orrery/storage/page_file.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;

constexpr const char* description_file = "job.json";

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

}  // namespace

job_folder::job_folder(std::string path, std::string target) : path_(std::move(path)), target_(std::move(target)) {
  std::error_code error;
  fs::create_directory(path_, error);
  if (error) throw_errno(error.value(), fmt::format("cannot make the folder {}, where progress is kept", path_));
  const std::string file = *this / "lock";
  lock_ = io::descriptor(file, O_RDWR | O_CREAT);
  struct stat ours{};
  struct stat there{};  // another file, if who had the lock has ended meanwhile and has removed it
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 || ::fstat(lock_.get(), &ours) != 0 ||
      ::stat(file.c_str(), &there) != 0 || ours.st_ino != there.st_ino)
    throw_errno(EBUSY, fmt::format("another program is at work on {}: wait until it has ended", target_));
}

job_folder::~job_folder() {
  std::error_code ignored;
  if (!fs::exists(about(), ignored)) fs::remove_all(path_, ignored);
}

std::string job_folder::about() const { return *this / description_file; }
bool job_folder::begun(const std::string& description) const {
  if (!fs::exists(about())) return false;
  if (text_of(about()) == description) return true;
  if (finished()) return false;  // and its program was killed before it could remove the folder
  throw std::invalid_argument(fmt::format(
      "a job that was interrupted has begun {}, and was another one than this (or had another plan): run that "
      "command again, or remove {} to forget it",
      target_, path_));
}
void job_folder::begin(const std::string& description) {
  write_text(*this / "job.new", description);
  fs::rename(*this / "job.new", about());
}

bool job_folder::passed(const std::string& step) const { return fs::exists(*this / step); }
void job_folder::pass(const std::string& step) { write_text(*this / step, ""); }

void job_folder::clear() {
  for (const auto& e : fs::directory_iterator(path_))
    if (e.path().filename() != "lock") fs::remove_all(e.path());
}
void job_folder::finish(const std::string& result) {
  write_text(*this / "finished.new", result);
  fs::rename(*this / "finished.new", *this / "finished");
}
std::optional<std::string> job_folder::finished() const {
  const std::string file = *this / "finished";
  return fs::exists(file) ? std::optional(text_of(file)) : std::nullopt;
}
void job_folder::remove(const std::string& path) {
  fs::remove(path + "/" + description_file);
  fs::remove_all(path);
}

}  // namespace orrery::storage
