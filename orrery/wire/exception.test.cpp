// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/exception.hpp>

#include <any>
#include <filesystem>
#include <functional>
#include <ios>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/wire/exception_class.hpp>
#include <orrery/wire/internal/test_message.hpp>

namespace orrery {
namespace exception_tests {

struct drive_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
ORRERY_EXCEPTION(drive_error);

struct seek_error : std::exception {
  int cylinder = 0;
  std::vector<int> tried;
  seek_error() = default;
  seek_error(int c, std::vector<int> t) : cylinder(c), tried(std::move(t)) {}
  const char* what() const noexcept override { return "seek"; }
  template <class A>
  void serialize(A& a) {
    a & cylinder & tried;
  }
};
ORRERY_EXCEPTION(seek_error);

const where device_read{"Device", "read", 3};

// As the caller of Device::read on PE 3 gets it, bytes and all.
template <class E>
std::exception_ptr send(const E& e) {
  return decode_exception(wire::round_trip(encode_exception(std::make_exception_ptr(e))), device_read);
}

template <class E>
void expect_same(const E& sent) {
  try {
    std::rethrow_exception(send(sent));
  } catch (const std::exception& received) {
    EXPECT_EQ(typeid(received), typeid(sent)) << typeid(received).name();
    EXPECT_STREQ(received.what(), sent.what());
  }
}

TEST(exception, logic_errors_come_back_as_they_were) {
  expect_same(std::logic_error("a"));
  expect_same(std::invalid_argument("b"));
  expect_same(std::domain_error("c"));
  expect_same(std::length_error("d"));
  expect_same(std::out_of_range("e"));
}

TEST(exception, runtime_errors_come_back_as_they_were) {
  expect_same(std::runtime_error("a"));
  expect_same(std::range_error("b"));
  expect_same(std::overflow_error("c"));
  expect_same(std::underflow_error("d"));
}

TEST(exception, exceptions_without_a_text_of_their_own_come_back_as_they_were) {
  expect_same(std::exception());
  expect_same(std::bad_alloc());
  expect_same(std::bad_array_new_length());
  expect_same(std::bad_cast());
  expect_same(std::bad_typeid());
  expect_same(std::bad_exception());
  expect_same(std::bad_weak_ptr());
  expect_same(std::bad_function_call());
  expect_same(std::bad_optional_access());
  expect_same(std::bad_variant_access());
  expect_same(std::bad_any_cast());
}

template <class E>
void expect_same_code(const E& sent) {
  try {
    std::rethrow_exception(send(sent));
  } catch (const std::system_error& received) {
    EXPECT_EQ(received.code(), sent.code());
    EXPECT_STREQ(received.what(), sent.what());
  }
}

TEST(exception, a_system_error_keeps_code_category_and_text) {
  expect_same(std::system_error(ENOENT, std::generic_category(), "open"));
  expect_same(std::system_error(EIO, std::system_category(), "pread: page 7"));
  expect_same(std::system_error(std::make_error_code(std::errc::timed_out)));
  expect_same_code(std::system_error(ENOENT, std::generic_category(), "open"));
  expect_same_code(std::system_error(EIO, std::system_category()));
  expect_same_code(std::system_error(std::make_error_code(std::io_errc::stream), "read"));
}

TEST(exception, stream_and_file_errors_arrive_as_system_errors_with_the_same_text) {
  expect_same_code(std::ios_base::failure("cannot read"));
  expect_same_code(std::filesystem::filesystem_error("cannot open", "/tmp/x",
                                                     std::make_error_code(std::errc::no_such_file_or_directory)));
}

TEST(exception, a_system_error_that_is_forwarded_keeps_its_text) {
  const std::filesystem::filesystem_error e("cannot open", "/tmp/x",
                                            std::make_error_code(std::errc::no_such_file_or_directory));
  const auto once = send(e);
  const auto twice = decode_exception(encode_exception(once), {"Proxy", "read", 4});
  try {
    std::rethrow_exception(twice);
  } catch (const std::system_error& received) {
    EXPECT_STREQ(received.what(), e.what());
    EXPECT_EQ(received.code(), e.code());
  }
}

TEST(exception, orrerys_own_errors_come_back_with_class_code_and_text) {
  expect_same(process_gone("3.17#2"));
  expect_same(node_lost("node 4"));
  expect_same(deadlock_error("A::f -> B::g -> A::f"));
  expect_same(stopped());
  expect_same(timeout_error());
  expect_same(mailbox_full());
  expect_same(broken_promise());
  expect_same(name_not_found("/data"));
  expect_same(name_taken("/data"));
  expect_same(bad_message(errc::unknown_handler, "Device::erase"));
  expect_same(world_error(errc::world_too_large, "100000 PEs"));
  expect_same(bad_remote_cast());
  expect_same(usage_error(errc::not_in_process));
  try {
    std::rethrow_exception(send(usage_error(errc::no_such_place, "pe(99)")));
  } catch (const usage_error& e) {
    EXPECT_EQ(e.code(), errc::no_such_place);
  }
}

// The exception that arrives where a remote_error is expected.
remote_error received_error(const std::exception_ptr& p) {
  try {
    std::rethrow_exception(p);
  } catch (const remote_error& e) {
    return e;
  } catch (...) {
    ADD_FAILURE() << "not a remote_error";
  }
  return remote_error({}, "", "");
}

struct disk_error : std::out_of_range {
  using std::out_of_range::out_of_range;
};

TEST(exception, a_class_of_the_users_own_becomes_a_remote_error_that_names_it) {
  const remote_error e = received_error(send(disk_error("page 18")));
  EXPECT_EQ(e.at(), device_read);
  EXPECT_EQ(e.type(), "orrery::exception_tests::disk_error");
  EXPECT_EQ(e.text(), "page 18");
  EXPECT_STREQ(e.what(), "Device::read on PE 3 threw orrery::exception_tests::disk_error: page 18");
}

class application_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "application"; }
  std::string message(int) const override { return "coffee is out"; }
};

TEST(exception, a_system_error_of_an_unknown_category_becomes_a_remote_error) {
  const application_category category;
  const remote_error e = received_error(send(std::system_error(7, category, "brew")));
  EXPECT_EQ(e.type(), "std::system_error");
  EXPECT_EQ(e.text(), "brew: coffee is out");
}

TEST(exception, a_remote_error_that_is_forwarded_still_names_its_origin) {
  const auto once = send(disk_error("page 18"));
  const auto again = decode_exception(wire::round_trip(encode_exception(once)), {"Proxy", "fetch", 9});
  EXPECT_STREQ(received_error(again).what(), received_error(once).what());
  EXPECT_EQ(received_error(again).at(), device_read);
}

TEST(exception, what_is_no_class_becomes_a_remote_error_that_names_its_type) {
  EXPECT_EQ(received_error(send(42)).type(), "int");
  EXPECT_EQ(received_error(send(device_read)).type(), "orrery::where");
}

TEST(exception, a_thrown_text_is_not_lost) {
  EXPECT_EQ(received_error(send(std::string("oops"))).text(), "oops");
  const char* text = "oops";
  EXPECT_EQ(received_error(send(text)).text(), "oops");
}

TEST(exception, the_causes_of_a_nested_exception_are_in_its_text) {
  std::exception_ptr thrown;
  try {
    try {
      throw std::out_of_range("page 18");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("cannot transform"));
    }
  } catch (...) {
    thrown = std::current_exception();
  }
  const remote_error e = received_error(decode_exception(encode_exception(thrown), device_read));
  EXPECT_EQ(e.text(), "cannot transform, because: page 18");
}

TEST(exception, no_exception_becomes_a_remote_error_of_unknown_type) {
  const remote_error e = received_error(decode_exception(encode_exception(nullptr), device_read));
  EXPECT_STREQ(e.what(), "Device::read on PE 3 threw an unknown type");
}

TEST(exception, of_a_class_with_a_line_comes_back_as_that_class) {
  expect_same(drive_error("on fire"));
  try {
    std::rethrow_exception(send(seek_error(7, {1, 2, 3})));
  } catch (const seek_error& e) {
    EXPECT_EQ(e.cylinder, 7);
    EXPECT_EQ(e.tried, (std::vector{1, 2, 3}));
  }
}

TEST(exception, of_a_class_derived_from_one_with_a_line_is_not_taken_for_it) {
  struct worse_error : drive_error {
    using drive_error::drive_error;
  };
  EXPECT_EQ(received_error(send(worse_error("smoke"))).text(), "smoke");
}

TEST(exception, with_a_damaged_state_becomes_a_remote_error) {
  wire_exception form = encode_exception(std::make_exception_ptr(seek_error(7, {1, 2, 3})));
  form.state.pop_back();
  EXPECT_NE(received_error(decode_exception(form, device_read)).type().find("seek_error"), std::string::npos);
  form.state.clear();
  EXPECT_NE(received_error(decode_exception(form, device_read)).type().find("seek_error"), std::string::npos);
}

TEST(exception, keeps_its_class_inside_a_node_where_it_would_between_nodes) {
  const auto keeps = [](const auto& e) { return keeps_class(std::make_exception_ptr(e)); };
  EXPECT_TRUE(keeps(std::out_of_range("a")));
  EXPECT_TRUE(keeps(drive_error("a")));
  EXPECT_TRUE(keeps(seek_error()));
  EXPECT_TRUE(keeps(process_gone("a")));
  EXPECT_TRUE(keeps(remote_error(device_read, "t", "a")));
  EXPECT_TRUE(keeps(std::system_error(std::make_error_code(std::errc::io_error))));
  struct own : std::logic_error {
    using std::logic_error::logic_error;
  };
  EXPECT_FALSE(keeps(own("a")));
  EXPECT_FALSE(keeps(17));
  EXPECT_FALSE(keeps_class(nullptr));
}

TEST(exception, any_numbers_make_some_exception) {
  for (unsigned kind = 0; kind <= 0xffff; kind += kind < 256 ? 1 : 255) {
    for (const std::int32_t value : {0, 1, -1, 3, 52, 70000, INT32_MIN, INT32_MAX}) {
      const wire_exception form{static_cast<std::uint16_t>(kind), value, "what", "type", "state", {}};
      EXPECT_NE(decode_exception(form, device_read), nullptr);
    }
  }
}

}  // namespace exception_tests
}  // namespace orrery
