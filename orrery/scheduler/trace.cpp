// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/trace.hpp>
#include <orrery/scheduler/trace_file.hpp>
#include <orrery/transport/wait.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace orrery::scheduler {

namespace {

constexpr std::size_t events_per_chunk = 4096;

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string name_of(const handler* method, const class_info* cls) {
  if (method != nullptr) return fmt::format("{}::{}", method->class_name, method->method);
  if (cls == nullptr) return "?";
  return cls->destroy == nullptr ? std::string(cls->name) : fmt::format("{}::(destructor)", cls->name);
}

}  // namespace

std::string trace_part(const std::string& path, std::uint32_t node) { return fmt::format("{}.{}", path, node); }

std::string to_string(const trace_summary& s) {
  if (!s.problem.empty()) return fmt::format("the trace was not written: {}", s.problem);
  std::string line = fmt::format("{} trace events are in {}: open it with https://ui.perfetto.dev", s.events, s.path);
  if (s.dropped != 0) line += fmt::format("; {} later ones had no room: raise --orrery-trace-memory", s.dropped);
  if (!s.missing.empty()) line += fmt::format("; of nodes {} there are none", fmt::join(s.missing, ", "));
  return line;
}

// --- recording ---------------------------------------------------------------------------------

trace_buffer::trace_buffer(std::uint32_t pe, std::size_t limit_bytes) : pe_(pe), limit_(limit_bytes / sizeof(event)) {
  open_.reserve(64);
}

trace_buffer::~trace_buffer() = default;

void trace_buffer::add(const event& e, kind what, std::int64_t begin, std::int64_t end) noexcept {
  if (events_ >= limit_) {
    ++dropped_;
    return;
  }
  const std::size_t at = events_ % events_per_chunk;
  try {
    if (at == 0) chunks_.push_back(std::make_unique_for_overwrite<event[]>(events_per_chunk));
  } catch (const std::bad_alloc&) {
    ++dropped_;
    return;
  }
  event& to = chunks_.back()[at];
  to = e;
  to.what = what;
  to.begin = begin;
  to.end = end;
  ++events_;
}

void trace_buffer::begin(const activation& a, address process) noexcept {
  const std::int64_t now = transport::now_ns();
  const event who{0, 0, a.method, a.process->cls(), process.slot, process.generation, 0, {}};
  try {
    open_.push_back({&a, now, now, who});
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void trace_buffer::end(const activation& a) noexcept {
  if (std::ranges::find(open_, &a, &open_method::frame) == open_.end()) return;
  const std::int64_t now = transport::now_ns();
  for (bool found = false; !found;) {  // what lies above was left by an exception
    const open_method& top = open_.back();
    found = top.frame == &a;
    add(top.who, kind::stretch, top.stretch_begin, now);
    if (top.who.sequence != 0) add(top.who, kind::method, top.begin, now);
    open_.pop_back();
  }
}

void trace_buffer::park() noexcept {
  if (open_.empty()) return;
  const std::int64_t now = transport::now_ns();
  for (open_method& m : open_ | std::views::reverse) {
    if (m.who.sequence == 0) m.who.sequence = ++sequence_;
    add(m.who, kind::stretch, m.stretch_begin, now);
    try {
      parked_.insert_or_assign(m.frame, parked_method{now, m});
    } catch (const std::bad_alloc&) {
      ++dropped_;
    }
  }
  open_.clear();
}

void trace_buffer::resume(const activation* innermost) noexcept {
  if (innermost == nullptr) return;
  const std::int64_t now = transport::now_ns();
  for (const activation* a = innermost; a != nullptr; a = a->below) {
    const auto it = parked_.find(a);
    if (it == parked_.end()) continue;
    parked_method& p = it->second;
    add(p.method.who, kind::parked, p.since, now);
    p.method.stretch_begin = now;
    open_.push_back(p.method);
    parked_.erase(it);
  }
  std::ranges::reverse(open_);
}

void trace_buffer::slept(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
  add(event{}, kind::sleep, begin_ns, end_ns);
}

// --- writing -----------------------------------------------------------------------------------

/// Writes the events of one node. A temporary of tracer::finish.
class trace_writer {
 public:
  trace_writer(std::FILE* file, const trace_settings& settings) noexcept : file_(file), settings_(settings) {}

  void head() {
    fmt::format_to(to(), "{}\n", trace_first_line(settings_.world, settings_.node));
    meta("process_name", 0, fmt::format(R"("name":{})", json_string(node_name())));
    meta("process_sort_index", 0, fmt::format(R"("sort_index":{})", settings_.node));
  }

  void pe(const trace_buffer& b) {
    meta("thread_name", b.pe(), fmt::format(R"("name":"PE {}")", b.pe()));
    meta("thread_sort_index", b.pe(), fmt::format(R"("sort_index":{})", b.pe()));
    std::vector<std::uint64_t> sorted(b.events_);
    std::iota(sorted.begin(), sorted.end(), 0U);
    const auto at = [&](std::uint64_t i) -> const event& {
      return b.chunks_[i / events_per_chunk][i % events_per_chunk];
    };
    // An inline call ends, and is recorded, before its caller; a viewer wants the caller first,
    // also where the clock has not moved between them.
    std::ranges::sort(sorted, [&](std::uint64_t i, std::uint64_t j) {
      const event& x = at(i);
      const event& y = at(j);
      return std::tuple(x.begin, -x.end, j) < std::tuple(y.begin, -y.end, i);
    });
    for (const std::uint64_t i : sorted) one(b, at(i));
    for (const auto& [frame, p] : b.parked_) {
      event e = p.method.who;
      e.end = -1;
      e.begin = p.method.begin;
      e.what = kind::method;
      one(b, e);
      e.begin = p.since;
      e.what = kind::parked;
      one(b, e);
    }
    if (b.dropped() != 0 && b.events_ != 0) {
      const event& last = b.chunks_.back()[(b.events_ - 1) % events_per_chunk];
      line(R"({{"ph":"i","s":"t","name":"{} later events had no room","pid":{},"tid":{},"ts":{}}})", b.dropped(),
           settings_.node, b.pe(), us(last.end));
    }
  }

  /// 0 or the errno of what failed.
  [[nodiscard]] int finish(std::uint64_t dropped) {
    fmt::format_to(to(), "\n{}{}}}\n", trace_last_line, dropped);
    flush();
    if (error_ == 0 && std::fflush(file_) != 0) error_ = errno;
    return error_;
  }

 private:
  using event = trace_buffer::event;
  using kind = trace_buffer::kind;

  [[nodiscard]] std::back_insert_iterator<fmt::memory_buffer> to() { return std::back_inserter(text_); }

  [[nodiscard]] std::string node_name() const {
    const std::string where = settings_.host.empty() ? std::string{} : " on " + settings_.host;
    return fmt::format("node {}{}: {} (pid {})", settings_.node, where, settings_.program, ::getpid());
  }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    if (!std::exchange(first_, false)) text_.append(std::string_view(",\n"));
    fmt::format_to(to(), format, std::forward<Args>(args)...);
    if (text_.size() >= (1U << 20)) flush();
  }

  void meta(std::string_view what, std::uint32_t tid, std::string_view value) {
    line(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, settings_.node, tid, value);
  }

  const std::string& name(const event& e) {
    const void* const key = e.method != nullptr ? static_cast<const void*>(e.method) : e.cls;
    std::string& known = names_[key];
    if (known.empty()) known = json_string(name_of(e.method, e.cls));
    return known;
  }

  void one(const trace_buffer& b, const event& e) {
    const std::uint32_t pid = settings_.node;
    const std::uint32_t tid = b.pe();
    if (e.what == kind::sleep) {
      line(R"({{"ph":"X","name":"sleep","cat":"pe","pid":{},"tid":{},"ts":{},"dur":{}}})", pid, tid, us(e.begin),
           us_between(e.end - e.begin));
      return;
    }
    const address process{tid, e.slot, e.generation};
    if (e.what == kind::stretch) {
      line(R"({{"ph":"X","name":{},"cat":"method","pid":{},"tid":{},"ts":{},"dur":{},)"
           R"("args":{{"process":"{}"}}}})",
           name(e), pid, tid, us(e.begin), us_between(e.end - e.begin), to_string(process));
      return;
    }
    const std::string_view shown = e.what == kind::parked ? std::string_view(R"("parked")") : std::string_view(name(e));
    const std::uint64_t id = std::uint64_t{tid} << 32 | e.sequence;
    line(R"({{"ph":"b","name":{},"cat":"parked","id":"{:#x}","pid":{},"tid":{},"ts":{},)"
         R"("args":{{"process":"{}"}}}})",
         shown, id, pid, tid, us(e.begin), to_string(process));
    if (e.end < 0) return;
    line(R"({{"ph":"e","name":{},"cat":"parked","id":"{:#x}","pid":{},"tid":{},"ts":{}}})", shown, id, pid, tid,
         us(e.end));
  }

  // The unit of the format.
  static std::string us_between(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  [[nodiscard]] std::string us(std::int64_t ns) const {
    return us_between(std::max<std::int64_t>(ns + settings_.clock_offset, 0));
  }

  void flush() {
    if (error_ == 0 && std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size()) error_ = errno;
    text_.clear();
  }

  std::FILE* file_;
  const trace_settings& settings_;
  fmt::memory_buffer text_;
  std::unordered_map<const void*, std::string> names_;
  bool first_ = true;
  int error_ = 0;
};

tracer::tracer(trace_settings settings)
    : settings_(std::move(settings)),
      path_(settings_.alone ? settings_.path : trace_part(settings_.path, settings_.node)),
      file_(settings_.is_carried ? std::tmpfile() : std::fopen(path_.c_str(), "we")) {
  if (file_ == nullptr) {
    throw world_error(errc::world_bad_setting, verbatim,
                      fmt::format("the trace {} cannot be written: {}; choose another path for "
                                  "--orrery-trace",
                                  settings_.is_carried ? "in a file of the folder for temporary ones" : path_,
                                  trace_error_text(errno)));
  }
}

tracer::~tracer() {
  if (file_ != nullptr && !settings_.is_carried && is_trace_file(path_)) ::unlink(path_.c_str());
}

trace_buffer& tracer::add_pe(std::uint32_t pe) {
  return *buffers_.emplace_back(std::make_unique<trace_buffer>(pe, settings_.bytes_per_pe));
}

trace_summary tracer::finish() {
  const file_limit_is_an_error limit;
  trace_summary s;
  s.path = path_;
  trace_writer writer(file_.get(), settings_);
  writer.head();
  for (const auto& b : buffers_) {
    s.events += b->events();
    s.dropped += b->dropped();
    writer.pe(*b);
  }
  int error = writer.finish(s.dropped);
  if (settings_.is_carried) {
    std::rewind(file_.get());
  } else if (std::fclose(file_.release()) != 0 && error == 0) {
    error = errno;
  }
  if (error != 0) {
    s.problem = fmt::format("{}: {}", path_, trace_error_text(error));
    // nobody can read half of it
    if (settings_.alone && is_trace_file(path_)) ::unlink(path_.c_str());
  }
  return s;
}

}  // namespace orrery::scheduler
