// SPDX-License-Identifier: Apache-2.0
// orrery-cc: compiles C with tasks and messages, and is used like cc. A source without them goes to the compiler as it is; others are preprocessed,
// translated, and compiled as preprocessed C.
#include <tools/orrery_cc/driver.hpp>
#include <tools/orrery_cc/failure.hpp>
#include <tools/orrery_cc/interruption.hpp>

#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

int main(int argc, char** argv) {
  using namespace orrery_cc;
  take_interruptions();
  try {
    return driver(parse_command_line(driver::words(argv + 1, argv + argc))).run();
  } catch (const source_error& e) {
    std::fputs(e.what(), stderr);
    return 1;
  } catch (const interrupted& by) {
    std::signal(by.signal, SIG_DFL);
    return std::raise(by.signal);
  } catch (const failed& f) {
    return f.code;
  } catch (const std::exception& e) {
    std::fputs(fmt::format("orrery-cc: error: {}\n", e.what()).c_str(), stderr);
    return 1;
  }
}
