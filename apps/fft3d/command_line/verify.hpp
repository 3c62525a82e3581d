// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../job.hpp"

#include <orrery/orrery.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace fft3d {

/// One thing that must hold, how far it is from it, and how far it may be.
struct finding {
  std::string what;
  double error = 0;
  double limit = 0;
  [[nodiscard]] bool good() const { return error <= limit; }  // not a number is not good
};

/// Nothing can be said: the input has numbers that are not finite.
struct not_verifiable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Compares the output of a request with its input, both as they are on their drives: the sums of
/// squares (Parseval), some thousands of coefficients at random places by direct summation, and the
/// input with what comes back from the output by the opposite transform (which needs as much room
/// as the output, and as much time; not for filters, which do not come back). Errors are relative
/// to the root mean square, for differences to the largest element.
///
/// To be called in a process. Throws not_verifiable, what reading throws, and what `perform`
/// throws.
[[nodiscard]] std::vector<finding> verify(const request& r, unsigned seed);

}  // namespace fft3d
