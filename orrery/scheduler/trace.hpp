// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::scheduler {

struct activation;
struct class_info;
struct handler;

/// How a node is traced.
struct trace_settings {
  std::string path;                        ///< of the trace of the whole world
  std::size_t bytes_per_pe = 32U << 20;    ///< memory for events; what comes later is dropped
  std::string program;                     ///< for people
  bool alone = true;                       ///< the only node: writes `path` itself
  std::uint32_t node = 0;
  std::uint64_t world = 0;                 ///< names this world only
  std::string host;                        ///< where the node is; empty: there is one machine only
  std::int64_t clock_offset = 0;           ///< nanoseconds, added to all times
  /// The part goes into a file without a name, for take_part().
  bool is_carried = false;
};

/// The outcome of a trace.
struct trace_summary {
  std::string path;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::vector<std::uint32_t> missing;  ///< nodes that have left no trace
  std::string problem;                 ///< why it could not be written; empty: it was
};
/// One line for people.
[[nodiscard]] std::string to_string(const trace_summary& s);

/// A PE's record of the methods it runs.
///
/// Problem: a trace viewer shows what a thread does as a pile of slices, but methods of one PE that
/// park and go on overlap in any order. So what is drawn on the PE's row is each *stretch* in which
/// a method ran without parking: these nest as inline calls do. A method that parked gets a row of
/// its own besides, from its begin to its end, with the times for which it was parked.
///
/// Owned by the tracer and used by one PE only, until the tracer writes. A method costs two looks
/// at the clock and 48 bytes. Memory is bounded: events beyond the limit are counted and forgotten,
/// and a parked method is remembered in some 150 bytes, next to the stack that it holds.
///
/// Invariants: `open_` holds the activations that are on the running fiber, innermost last;
/// `parked_` those on other fibers. An activation is in one of them.
class trace_buffer {
 public:
  trace_buffer(std::uint32_t pe, std::size_t limit_bytes);
  trace_buffer(const trace_buffer&) = delete;
  trace_buffer& operator=(const trace_buffer&) = delete;
  ~trace_buffer();

  /// A method begins on the running fiber, on top of those that run there.
  void begin(const activation& a, address process) noexcept;
  void end(const activation& a) noexcept;
  /// The PE leaves the running fiber: everything on it is parked.
  void park() noexcept;
  /// It has switched to a fiber whose innermost activation is `innermost` (null: none).
  void resume(const activation* innermost) noexcept;
  /// The PE slept.
  void slept(std::int64_t begin_ns, std::int64_t end_ns) noexcept;

  [[nodiscard]] std::uint32_t pe() const noexcept { return pe_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  friend class trace_writer;
  enum class kind : std::uint8_t { stretch, method, parked, sleep };
  struct event {
    std::int64_t begin;
    std::int64_t end;  // -1: not over when the trace ended
    const handler* method;  // null: a process function or a destructor, as `cls` says
    const class_info* cls;
    std::uint32_t slot;
    std::uint32_t generation;
    std::uint32_t sequence;  // of a method that parked, in its PE; 0: it has not
    kind what;
  };
  struct open_method {
    const activation* frame;
    std::int64_t stretch_begin;
    std::int64_t begin;
    event who;
  };
  struct parked_method {
    std::int64_t since;
    open_method method;
  };

  void add(const event& e, kind what, std::int64_t begin, std::int64_t end) noexcept;

  std::uint32_t pe_;
  std::uint32_t sequence_ = 0;
  std::size_t limit_;  // events
  std::uint64_t events_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<std::unique_ptr<event[]>> chunks_;
  std::vector<open_method> open_;
  std::unordered_map<const activation*, parked_method> parked_;
};

/// Traces one node into a file that Perfetto (https://ui.perfetto.dev) and chrome://tracing read.
///
/// The file is opened before anything runs, so that a path that cannot be written is an error then
/// and not after hours. With several nodes each writes `<path>.<node>`; merge_traces makes one file
/// of them when all have ended. On machines that do not share the file's folder the part is carried
/// to where it does exist. Times are CLOCK_MONOTONIC, which all nodes of a machine share.
///
/// Owned by the runtime; made before the node's PEs run and finished after they have ended, both by
/// its main thread.
class tracer {
 public:
  /// Throws world_error if the file cannot be opened.
  explicit tracer(trace_settings settings);
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;
  /// Without finish() nothing was written: removes the file.
  ~tracer();

  /// The buffer for one more PE; lives as long as the tracer.
  [[nodiscard]] trace_buffer& add_pe(std::uint32_t pe);
  /// Writes the file. To be called once.
  [[nodiscard]] trace_summary finish();
  struct closer {
    void operator()(std::FILE* f) const noexcept { std::fclose(f); }
  };
  /// With `is_carried`, after finish(): the file, to be read from its begin.
  [[nodiscard]] std::unique_ptr<std::FILE, closer> take_part() noexcept { return std::move(file_); }

 private:
  trace_settings settings_;
  std::string path_;
  std::unique_ptr<std::FILE, closer> file_;
  std::vector<std::unique_ptr<trace_buffer>> buffers_;
};

/// The file of a node's part of the trace in `path`.
[[nodiscard]] std::string trace_part(const std::string& path, std::uint32_t node);
/// Makes `path` of the files of nodes [0, nodes) of that world, and removes them. Nodes that have
/// crashed have left none, or the beginning of one; what an earlier world left is not taken.
[[nodiscard]] trace_summary merge_traces(const std::string& path, std::uint64_t world, std::uint32_t nodes);

}  // namespace orrery::scheduler
