// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/service/detail/walk_process.hpp>
#include <orrery/service/event.hpp>
#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace orrery::service {

/// Where a walking list answers the requests of one session.
///
/// Problem: a session calls; a walking request is passed on from process to process, and the last
/// one answers.
///
/// The gate takes a batch like a range, sends its requests off, and parks until all are answered.
/// It is reentrant, so it takes answers and further batches meanwhile: no client can hold the list
/// up.
///
/// Made by the manager of a PE for a session; ends when the session and its streams have ended, or
/// with its node.
class walk_gate : public range_process {
 public:
  static constexpr bool orrery_reentrant = true;

  bytes serve(const batch_head& head, std::span<const std::byte> packed) final;
  /// From the process that has executed the request.
  void answer(std::uint64_t request, std::uint64_t moment, std::uint64_t version, std::span<const std::byte> packed);
  /// A shortcut was stale: these requests were not executed.
  virtual void stale(std::uint64_t first, std::uint32_t count, std::span<const std::byte> requests) = 0;

  /// The list is lost, says its manager or who met the loss first: all that is open and what comes
  /// fails with node_lost. So a session that has seen node_lost sees nothing else any more.
  void fail(const std::string& why);
  /// The list ends: returns when all that is open is answered; what comes fails with process_gone.
  /// Once. Parks.
  void finish_requests();

  /// Its session has ended.
  void end_session() noexcept { session_ended_ = true; }
  /// Whether its session has ended, and all streams of that.
  [[nodiscard]] bool is_unused() const noexcept { return session_ended_ && streams_ == 0; }

  range_report report() final { return report_; }

 protected:
  /// New requests, the first of which has this number.
  virtual void accept(std::uint64_t first, std::uint32_t count, std::span<const std::byte> requests) = 0;
  /// The request was answered.
  virtual void ended(std::uint64_t request) = 0;
  /// The manager of this PE is to know.
  virtual void tell_of_loss(const std::string& why) = 0;
  [[nodiscard]] bool is_over() const noexcept { return over_ != nullptr; }
  /// It keeps something for a stream from now on,
  void begin_stream() noexcept { ++streams_; }
  /// and no more.
  void end_stream() noexcept { --streams_; }
  /// All that is open fails.
  void fail_open(const std::exception_ptr& why);

 private:
  struct batch {
    std::vector<bytes> answers;
    std::vector<std::uint64_t> versions;  // if they are asked for
    std::size_t left = 0;
    std::uint64_t moment = 0;  // of its first request
    event all_answered;
  };
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, batch*> open_;  // by their first requests
  range_report report_;
  std::exception_ptr over_;  // why nothing is answered any more
  bool closed_ = false;  // new requests are refused
  event* none_open_ = nullptr;  // who waits for the last answer
  bool session_ended_ = false;
  std::uint32_t streams_ = 0;
};
ORRERY_PROCESS(walk_gate, answer, stale, fail, finish_requests, end_session, is_unused);

/// The answer to one request, which took effect with this version: to its gate.
void reply(const walk_request& w, std::uint64_t version, std::span<const std::byte> packed);
/// Replies that the list has no free process left.
void reply_full(const walk_request& w);
/// Replies that the request has failed; it may have been executed. With node_lost the list is lost,
/// and all requests of the gate fail.
void reply_failed(const walk_request& w, const std::exception_ptr& why);

}  // namespace orrery::service
