// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/root.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace orrery::service {

/// Measures the work of a range, for whom it is, and how long it takes.
///
/// Problem: whether ranges are in the right places is seen from what they do; and who counts must
/// cost next to nothing for each batch.
///
/// Requests are counted, the time of each eighth batch is measured. One that took far longer for
/// each request than those before it was perhaps interrupted by the system, and counts as four
/// times as long: so a range that has really become slow is known after some batches, and no other
/// looks hot. From which PE most batches come
/// is found with one candidate: its batches count one vote for it, others two against it, so that
/// it keeps votes only with more than two thirds of them. The root hears of each 4,096 requests, in
/// one message at a time.
///
/// Part of a range; used by this process only.
class load_meter {
 public:
  static constexpr std::uint32_t sure = 64;  ///< the greatest number of votes

  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  [[nodiscard]] std::uint64_t busy_ns() const noexcept { return busy_ns_; }
  [[nodiscard]] std::uint32_t client_pe() const noexcept { return client_; }
  [[nodiscard]] std::uint32_t client_votes() const noexcept { return votes_; }

  void begin(std::uint32_t requests, std::uint32_t from_pe) {
    requests_ += requests;
    unsaid_ += requests;
    if (from_pe == client_) {
      votes_ = std::min(votes_ + 1, sure);
    } else if (votes_ > 2) {
      votes_ -= 2;
    } else {
      client_ = from_pe;
      votes_ = 1;
    }
    sampled_ = (batches_++ & 7U) == 0 ? requests : 0;
    if (sampled_ != 0) begun_ = now();
  }
  /// Never parks for long: no message is sent while the last one is on its way.
  void end(const remote<service_root>& root) {
    if (sampled_ != 0) sample(static_cast<double>((now() - begun_).count()) / sampled_);
    if (unsaid_ >= 4096) [[unlikely]]
      tell(root);
  }

 private:
  void sample(double ns_of_request) {
    if (ns_of_request_ == 0) ns_of_request_ = ns_of_request;
    ns_of_request_ += (std::min(ns_of_request, 4 * ns_of_request_) - ns_of_request_) / 8;
    busy_ns_ += static_cast<std::uint64_t>(ns_of_request_ * static_cast<double>(requests_ - counted_));
    counted_ = requests_;
  }
  void tell(const remote<service_root>& root) {
    if (lost_ || (said_.valid() && !said_.ready())) return;
    try {
      if (said_.valid()) said_.get();
      said_ = start(root)->note_work(unsaid_);
      unsaid_ = 0;
    } catch (const node_lost&) {
      lost_ = true;
    } catch (const process_gone&) {
      lost_ = true;
    } catch (const stopped&) {
      throw;
    } catch (...) {  // NOLINT(bugprone-empty-catch): what balancing met is no matter of this batch
    }
  }

  std::uint64_t requests_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t unsaid_ = 0;
  std::chrono::nanoseconds begun_{};
  future<void> said_;
  std::uint32_t client_ = 0;
  std::uint32_t votes_ = 0;
  std::uint64_t counted_ = 0;  // requests whose time is in busy_ns_
  double ns_of_request_ = 0;  // smoothed
  std::uint32_t sampled_ = 0;  // requests of the batch whose time is measured
  bool lost_ = false;
};

}  // namespace orrery::service
