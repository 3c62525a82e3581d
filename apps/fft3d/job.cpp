// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include "lines.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

namespace fft3d {
namespace {

namespace fs = std::filesystem;
using namespace orrery;
using namespace orrery::storage;

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

[[noreturn]] void fail(int code, const std::string& text) {
  throw std::system_error(code, std::system_category(), text);
}

// A data set with all its files, and what a program that was killed while it made one has left.
void remove_set(const std::string& path) {
  try {
    for (const std::string& file : data_set::read_info(path).files)
      for (const fs::path& f : {fs::path(file), fs::path(file).replace_extension(".sums")}) fs::remove(f);
  } catch (const std::exception&) {  // no header: then there is nothing elsewhere either
  }
  fs::remove_all(path);
}

/// All that belongs to one request: the data sets, the folder with its progress, the ledger.
class job {
 public:
  job(const request& r, const observer& watch);
  job(const job&) = delete;
  job& operator=(const job&) = delete;
  ~job();
  outcome run();

 private:
  void lock();
  void begin_or_resume();
  void require_space() const;
  [[nodiscard]] drive_rates measure() const;
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::string path_of(place p) const;
  [[nodiscard]] const remote<data_set>& set(place p) const;
  [[nodiscard]] storage::array at(place p) const;
  [[nodiscard]] std::vector<std::string> folders() const;
  void end_processes() noexcept;

  request request_;
  const observer& watch_;
  std::string target_;  // the output, or the input in place
  fs::path folder_;
  data_set_info input_;
  plan plan_;
  io::descriptor lock_;
  bool resumed_ = false;
  remote<ledger> ledger_;
  group<transformer> transformers_;
  std::map<place, remote<data_set>> sets_;
  std::optional<storage::array> memory_;
};

job::job(const request& r, const observer& watch) : request_(r), watch_(watch), input_(data_set::read_info(r.input)) {
  target_ = r.output.empty() ? input_.path : fs::absolute(r.output).lexically_normal().string();
  folder_ = target_ + ".fft3d";
  plan_ = make_plan(request_, input_, world_pes(), world_nodes());
  lock();
  try {
    begin_or_resume();
  } catch (...) {
    end_processes();
    if (!fs::exists(folder_ / "job.json")) fs::remove_all(folder_);  // it has not begun
    throw;
  }
}
job::~job() { end_processes(); }

// When they are gone the files are free for whoever comes next.
void job::end_processes() noexcept {
  try {
    if (transformers_.size() != 0) destroy(transformers_);
    if (ledger_) destroy(ledger_);
    for (const auto& [where, set] : std::exchange(sets_, {})) destroy(set);
    if (memory_)
      for (const auto& d : memory_->devices()) destroy(d);
  } catch (const std::exception&) {  // the world ends, and they with it
  }
}

void job::lock() {
  std::error_code error;
  fs::create_directory(folder_, error);
  if (error) fail(error.value(), fmt::format("cannot make the folder {}, where progress is kept", folder_.string()));
  const std::string file = (folder_ / "lock").string();
  lock_ = io::descriptor(file, O_RDWR | O_CREAT);
  struct stat ours{};
  struct stat there{};  // another file, if who had the lock has ended meanwhile and has removed it
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 || ::fstat(lock_.get(), &ours) != 0 ||
      ::stat(file.c_str(), &there) != 0 || ours.st_ino != there.st_ino)
    fail(EBUSY, fmt::format("another program is transforming to {}: wait until it has ended", target_));
}

std::string job::description() const {
  nlohmann::ordered_json passes;
  for (const pass& p : plan_.passes) {
    nlohmann::ordered_json phases;
    for (const phase& q : p.phases) phases.push_back({q.dimension, q.forward, q.filter, q.inverse});
    passes.push_back({{"phases", phases}, {"unit", p.unit}, {"from", p.from}, {"to", p.to}});
  }
  return nlohmann::ordered_json{{"input", input_.path},
                                {"output", target_},
                                {"operation", request_.what},
                                {"filter", {request_.filter.what, request_.filter.low, request_.filter.high}},
                                {"shape", input_.shape},
                                {"page_shape", input_.page_shape},
                                {"types", {plan_.input_type, plan_.output_type}},
                                {"passes", passes}}
      .dump(1);
}

void job::begin_or_resume() {
  const fs::path about = folder_ / "job.json";
  resumed_ = fs::exists(about);
  if (resumed_ && text_of(about) != description())
    throw std::invalid_argument(fmt::format(
        "a transform to {} was interrupted, and was another one than this (or had another plan): run that command again, or remove {} to forget it",
        target_, folder_.string()));
  if (!resumed_) {
    for (const place p : {place::scratch, place::second_scratch}) remove_set(path_of(p));
    for (const auto& e : fs::directory_iterator(folder_))
      if (e.path().filename() != "lock") fs::remove_all(e.path());
    if (!input_.finished)
      fail(EBADMSG, fmt::format("the data set {} is unfinished: run again what writes it", input_.path));
    if (!request_.output.empty() && fs::exists(target_))
      fail(EEXIST, fmt::format("there is something at {} already: remove it first, or choose another place", target_));
    require_space();
  }
  const drive_rates rates = measure();
  watch_.planned(plan_, rates, resumed_);
  if (!resumed_) {
    std::ofstream(folder_ / "job.new") << description();
    fs::rename(folder_ / "job.new", about);  // from here on what is at the target is ours
  }
  const bool made = fs::exists(folder_ / "made");
  if (!made)
    for (const place p : plan_.created) remove_set(path_of(p));
  for (const place p : {place::input, place::output, place::scratch, place::second_scratch}) {
    const bool create = std::ranges::count(plan_.created, p) != 0;
    const bool writes = create || (p == place::input && request_.output.empty());
    data_set_options o{.mode = writes ? open_mode::read_write : open_mode::read_only, .cache = {0, 0}};
    // Drives that work in the same pass are served by different PEs.
    for (std::uint32_t i = 0; i < world_pes(); ++i) o.pes.push_back((i + (p == place::scratch)) % world_pes());
    if (create && !made)
      sets_[p] = spawn<data_set>(
          here(), path_of(p),
          data_set_description{plan_.grid.array_shape, plan_.grid.page_shape, plan_.type_at(p), folders()}, o);
    else if (create || p == place::input)
      sets_[p] = spawn<data_set>(here(), path_of(p), o);
  }
  std::ofstream(folder_ / "made").flush();
  if (plan_.in_memory()) memory_ = array_in_memory(plan_, folder_.string());
  std::vector<std::int64_t> units;
  for (std::size_t i = 0; i < plan_.passes.size(); ++i) units.push_back(plan_.units(i));
  ledger_ = spawn<ledger>(here(), plan_.in_memory() ? "" : (folder_ / "progress").string(), units);
}

std::string job::path_of(place p) const {
  return p == place::input    ? input_.path
         : p == place::output ? target_
                              : (folder_ / (p == place::scratch ? "scratch" : "second")).string();
}
std::vector<std::string> job::folders() const {
  if (!request_.output.empty() || input_.files.size() == 1) return request_.folders;
  std::vector<std::string> all;
  for (const std::string& f : input_.files) all.push_back(fs::path(f).parent_path().string());
  return all;
}

void job::require_space() const {
  std::uint64_t bytes = 0;
  for (const place p : plan_.created) bytes += plan_.bytes_at(p);
  auto where = folders();
  if (where.empty()) where.push_back(folder_.string());
  for (const std::string& f : where) {
    std::error_code unknown;
    const fs::path there = fs::exists(f) ? fs::path(f) : fs::path(f).parent_path();
    const auto space = fs::space(there, unknown);
    if (!unknown && space.available < bytes / where.size())
      fail(ENOSPC,
           fmt::format(
               "the transform needs {} at {}, for its output and for what is between the passes, and {} are free",
               storage::detail::bytes_text(bytes / where.size()), f, storage::detail::bytes_text(space.available)));
  }
}

// Some pages of the input, and as many bytes to the first drive of the output, eight at a time.
drive_rates job::measure() const {
  constexpr std::int64_t bytes = 64 << 20;
  const auto page_bytes = static_cast<std::int64_t>(array_page::bytes_of(plan_.grid.page_shape, plan_.work_type));
  const std::int64_t all = plan_.grid.page_count();
  const std::int64_t count = std::max<std::int64_t>(8, bytes / page_bytes);
  if (page_bytes * all < 4 * bytes) return {};  // not worth it
  const auto rate = [&](std::size_t each, auto&& start_one) {
    const double begin = now();
    for (std::int64_t i = 0; i < count; i += 8) {
      std::vector<decltype(start_one(i))> some;
      for (std::int64_t k = i; k < std::min(i + 8, count); ++k) some.push_back(start_one(k));
      for (auto& f : some) (void)f.get();
    }
    return static_cast<double>(count) * static_cast<double>(each) / (now() - begin);
  };
  auto in = spawn<data_set>(here(), input_.path, data_set_options{.unfinished = true, .cache = {0, 0}});
  const storage::array from = in->contents();
  const std::string file = (folder_ / "measure").string();
  fs::remove(file);
  auto drive = spawn<page_device>(here(), file, count, page_bytes);
  const page p(static_cast<std::size_t>(page_bytes));
  const drive_rates r{
      rate(array_page::bytes_of(plan_.grid.page_shape, from.type()),
           [&](std::int64_t i) { return from.start_read_whole(plan_.grid.page_at(i * (all / count))); }),
      rate(page_bytes, [&](std::int64_t i) { return start(drive)->write(p, i); })};
  destroy(in);
  drive->close();
  destroy(drive);
  fs::remove(file);
  trim_page_pool();
  return r;
}

const remote<data_set>& job::set(place p) const {
  return sets_.at(p == place::output && request_.output.empty() ? place::input : p);
}
storage::array job::at(place p) const { return p == place::memory ? *memory_ : set(p)->contents(); }

outcome job::run() {
  using namespace std::chrono_literals;
  outcome result{.begin = now(), .resumed = resumed_};
  transformers_ = spawn_group<transformer>(everywhere(), plan_.processes, plan_, ledger_);
  status s;
  for (std::size_t i = 0; i < plan_.passes.size(); ++i) s.units += plan_.units(i);
  for (s.pass = 0; s.pass < plan_.passes.size(); ++s.pass) {
    pass_record record{.begin = now(), .units = -ledger_->units_done()};
    if (!ledger_->finished(s.pass)) {
      ledger_->begin(s.pass);
      const pass& p = plan_.passes[s.pass];
      auto logs = start(transformers_)->run(s.pass, at(p.from), at(p.to));
      while (!logs.wait_for(100ms)) {
        s.units_done = ledger_->units_done();
        watch_.progress(s);
      }
      record.logs = logs.get();
      at(p.to).flush();
    }
    record.end = now();
    record.units += ledger_->units_done();
    for (const work_log& l : record.logs) result.not_a_number += l.not_a_number;
    result.passes.push_back(std::move(record));
  }
  s.units_done = s.units;
  watch_.progress(s);
  set(place::output)->finish();
  result.end = now();
  save_wisdom();
  end_processes();
  fs::remove(folder_ / "job.json");  // with it the job ends; what is left without it means nothing
  for (const place p : plan_.created)
    if (p != place::output) remove_set(path_of(p));
  fs::remove_all(folder_);
  return result;
}

}  // namespace

outcome perform(const request& r, const observer& watch) { return job(r, watch).run(); }

}  // namespace fft3d
