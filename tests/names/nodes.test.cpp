// SPDX-License-Identifier: Apache-2.0
// Names in worlds of several nodes. Each test starts this program again as the first node of a world (--scenario=NAME and
// the runtime's options), which says on stderr what is wrong and exits with 1, or exits with 0.
#include "../support/scenario.hpp"

#include <algorithm>

namespace {

using namespace orrery::testing;

// --- what runs in the worlds -------------------------------------------------------------------------

struct device {
  explicit device(int n) : number(n) {}
  int get() { return number; }
  int pid() { return ::getpid(); }
  int number;
};
ORRERY_PROCESS(device, get, pid);

struct special_device : device {
  using device::device;
  std::string hello() { return "special"; }
};
ORRERY_PROCESS(special_device, hello);

std::string name_of(std::uint32_t pe, int i) { return fmt::format("/pe/{}/device/{}", pe, i); }

constexpr int names_per_pe = 40;

// Publishes devices of this PE, one name each; device i has the number i.
void publish_devices() {
  for (int i = 0; i < names_per_pe; ++i)
    publish(name_of(orrery::this_pe(), i), orrery::spawn<special_device>(orrery::here(), i));
}

// Looks all names of these PEs up; the number of those that are not what they should be.
int wrong_lookups(std::vector<std::uint32_t> pes) {
  int wrong = 0;
  for (const std::uint32_t pe : pes)
    for (int i = 0; i < names_per_pe; ++i) try {
        const auto p = orrery::lookup<device>(name_of(pe, i));
        if (p.address().pe != pe || p->get() != i) ++wrong;
      } catch (const std::exception& e) {
        fmt::print(stderr, "node {}: {}\n", orrery::this_node(), e.what());
        ++wrong;
      }
  return wrong;
}

// The same again and again until a name comes up.
int wrong_lookups_until(std::vector<std::uint32_t> pes, std::string end) {
  int wrong = 0;
  for (;;) {
    wrong += wrong_lookups(pes);
    try {
      (void)orrery::lookup<device>(end);
      return wrong;
    } catch (const orrery::name_not_found&) {
    }
  }
}

std::vector<std::uint32_t> all_pes() {
  std::vector<std::uint32_t> pes(orrery::world_pes());
  for (std::uint32_t i = 0; i < pes.size(); ++i) pes[i] = i;
  return pes;
}

std::size_t published_by(std::uint32_t pe) { return orrery::names(fmt::format("/pe/{}/", pe)).size(); }

int own_pid() { return ::getpid(); }

void every_pe_finds_all() {
  const auto pes = all_pes();
  std::vector<orrery::future<void>> published;
  for (const auto pe : pes) published.push_back(orrery::start_call<&publish_devices>(orrery::pe(pe)));
  for (auto& f : published) f.get();
  for (const auto pe : pes) check(orrery::call<&wrong_lookups>(orrery::pe(pe), pes) == 0, fmt::format("PE {}", pe));
  const auto all = orrery::names("/pe/");
  check(all.size() == pes.size() * names_per_pe, fmt::format("{} names are listed", all.size()));
  check(std::ranges::is_sorted(all, {}, &orrery::published_name::name), "the list is not sorted");
  for (const auto& n : all)
    check(n.class_name == "{anonymous}::special_device" || n.class_name == "(anonymous namespace)::special_device",
          n.class_name);
  try {
    (void)orrery::lookup<device>("/pe/2/device/111");
    check(false, "a wrong name was found");
  } catch (const orrery::name_not_found& e) {
    check(std::string_view(e.what()).find("did you mean \"/pe/2/device/11\"") != std::string::npos, e.what());
  }
}

void classes_are_checked() {
  const auto last = orrery::pe(orrery::world_pes() - 1);
  const auto plain = orrery::spawn<device>(last, 1);
  publish("/plain", plain);
  publish("/special", orrery::spawn<special_device>(last, 2));
  check(orrery::lookup<special_device>("/special")->hello() == "special", "hello");
  check(orrery::remote_cast<special_device>(orrery::lookup<device>("/special"))->get() == 2, "get");
  thrown<orrery::bad_remote_cast>("lookup", [] { (void)orrery::lookup<special_device>("/plain"); });
  thrown<orrery::bad_remote_cast>("cast", [&] { (void)orrery::remote_cast<special_device>(plain); });
  thrown<orrery::bad_remote_cast>("await", [] { (void)orrery::await_name<special_device>("/plain", patience); });
  check(orrery::remote_class_name(plain).ends_with("::device"), "class name");
}

void names_end_with_their_process() {
  std::vector<orrery::remote<device>> devices;
  for (const auto pe : all_pes())
    for (int i = 0; i < 20; ++i) devices.push_back(orrery::spawn<device>(orrery::pe(pe), i));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    publish(fmt::format("/a/{}", i), devices[i]);
    publish(fmt::format("/b/{}", i), devices[i]);
  }
  for (std::size_t i = 0; i < devices.size(); i += 2) {
    destroy(devices[i]);
    thrown<orrery::name_not_found>("lookup", [&] { (void)orrery::lookup<device>(fmt::format("/a/{}", i)); });
    publish(fmt::format("/b/{}", i), devices[i + 1]);  // free again
    destroy(devices[i + 1]);
  }
  check(orrery::names().empty(), fmt::format("{} names are left", orrery::names().size()));
  // A function that ends.
  const auto f = orrery::spawn(orrery::pe(orrery::world_pes() - 1), [] {
    publish("/function", orrery::this_process<orrery::function>());
    (void)orrery::receive<int>();
  });
  check(orrery::await_name<orrery::function>("/function", patience) == f, "another function");
  send(f, 1);
  for (;;) {  // there is nothing to wait for the end of a function with
    if (orrery::names("/function").empty()) break;
    orrery::yield();
  }
}

// Node 2 is killed while all others look names up without a pause.
void a_killed_node_takes_only_its_own_names() {
  const auto pes = all_pes();
  for (const auto pe : pes) orrery::call<&publish_devices>(orrery::pe(pe));
  std::vector<std::uint32_t> living;
  std::vector<std::uint32_t> dying;
  const auto first_dying = orrery::call<&orrery::this_pe>(orrery::node(2)) / 2 * 2;
  for (const auto pe : pes) (pe == first_dying || pe == first_dying + 1 ? dying : living).push_back(pe);
  check(dying.size() == 2 && living.size() == pes.size() - 2, "the nodes do not have 2 PEs each");
  const auto victim = orrery::lookup<device>(name_of(dying[0], 0));
  const int pid = victim->pid();

  std::vector<orrery::future<int>> searches;
  for (const auto pe : living)
    searches.push_back(orrery::start_call<&wrong_lookups_until>(orrery::pe(pe), living, std::string("/end")));
  // A name that nobody has is awaited across the change.
  auto waiter = orrery::spawn(orrery::pe(living.back()), [] {
    const auto p = orrery::await_name<device>("/late", patience);
    publish("/late/answer", p);
  });
  (void)waiter;
  ::kill(pid, SIGKILL);
  thrown<orrery::node_lost>("a call to the killed node", [&] {
    for (;;) (void)victim->get();
  });
  for (const auto pe : dying)
    for (int i = 0; i < names_per_pe; ++i)
      thrown<orrery::name_not_found>("a lookup of what is lost", [&] { (void)orrery::lookup<device>(name_of(pe, i)); });
  for (const auto pe : dying) check(published_by(pe) == 0, "names of a lost node are listed");
  for (const auto pe : living) check(published_by(pe) == names_per_pe, "names of a living node are not listed");
  // The names of the lost processes are free.
  const auto heir = orrery::spawn<device>(orrery::here(), 1);
  for (const auto pe : dying) publish(name_of(pe, 0), heir);
  publish("/late", heir);
  check(orrery::await_name<device>("/late/answer", patience) == heir, "another process");
  publish("/end", heir);
  for (auto& f : searches) check(f.get() == 0, "names of living processes were not found");
}

// Processes of all nodes are published and destroyed while node 1 is killed: in the end what is listed is what lives.
void a_node_is_killed_while_names_come_and_go() {
  const int pid = orrery::call<&own_pid>(orrery::node(1));
  std::map<std::string, orrery::remote<device>> alive;
  const auto change = [&](std::uint32_t node, int i) {
    const std::string name = fmt::format("/churn/{}", i % 50);
    if (const auto it = alive.find(name); it != alive.end()) {
      if (i % 3 == 0) {
        destroy(it->second);
      } else {
        check(orrery::unpublish(name), "a name was not there");
      }
      alive.erase(it);
    } else {
      const auto p = orrery::spawn<device>(orrery::node(node), i);
      publish(name, p);
      alive.emplace(name, p);
    }
  };
  const std::array<std::uint32_t, 2> nodes{0, 2};
  for (int i = 0; i < 500; ++i) {
    if (i == 250) ::kill(pid, SIGKILL);
    change(nodes[static_cast<std::size_t>(i) % 2], i * 7);
  }
  thrown<orrery::node_lost>("a call to the killed node", [&] {
    for (;;) (void)orrery::call<&own_pid>(orrery::node(1));
  });
  for (int i = 500; i < 600; ++i) change(nodes[static_cast<std::size_t>(i) % 2], i * 7);
  const auto listed = orrery::names("/churn/");
  check(listed.size() == alive.size(), fmt::format("{} names are listed, {} live", listed.size(), alive.size()));
  for (const auto& n : listed) check(alive.contains(n.name) && alive[n.name].address() == n.process, n.name);
}

// --- two programs in one world; `others` more join and leave ---

void the_first_of_a_named_world() {
  publish_devices();
  publish("/first", orrery::spawn<device>(orrery::here(), 1));
  fmt::print(stderr, "up\n");
  const auto second = orrery::await_name<device>("/second", patience);
  check(second->get() == 2, "second");
  check(second.address().pe != orrery::this_pe(), "the second program is the first");
  publish("/answer", orrery::spawn<device>(orrery::here(), 3));
  // It leaves, and its names with it; between the two its PEs destroy their processes.
  const auto has_left = [&] {
    try {
      (void)second->get();
    } catch (const orrery::process_gone&) {
    } catch (const orrery::node_lost&) {
      return true;
    }
    return false;
  };
  while (!has_left()) orrery::yield();
  thrown<orrery::name_not_found>("lookup of who left", [] { (void)orrery::lookup<device>("/second"); });
  check(wrong_lookups({0}) == 0, "own names");
}

void the_second_of_a_named_world() {
  check(orrery::lookup<device>("/first")->get() == 1, "first");
  check(wrong_lookups({0}) == 0, "names of the first program");
  publish("/second", orrery::spawn<device>(orrery::here(), 2));
  check(orrery::await_name<device>("/answer", patience)->get() == 3, "answer");
}

// The world ends with the first program: the last guest is to leave before.
void let_the_last_guest_leave() {
  publish("/host/has/seen/it", orrery::lookup<device>("/host"));
  for (;;) try {
      (void)orrery::lookup<device>("/guest/last")->get();
    } catch (const orrery::name_not_found&) {
      return;
    } catch (const orrery::process_gone&) {  // it is leaving
    } catch (const orrery::node_lost&) {
    }
}

// Looks its own names up until `/guest/last`, while guests come and go.
void host() {
  publish_devices();
  publish("/host", orrery::spawn<device>(orrery::here(), 0));
  fmt::print(stderr, "up\n");
  check(wrong_lookups_until({0}, "/guest/last") == 0, "names of a living process were not found");
  let_the_last_guest_leave();
}

void guest(const std::string& name) {
  check(orrery::lookup<device>("/host")->get() == 0, "host");
  check(wrong_lookups({0}) == 0, "names of the host");
  publish_devices();
  check(wrong_lookups({orrery::this_pe()}) == 0, "names of the guest");
  publish("/guest/" + name, orrery::spawn<device>(orrery::here(), 0));
  if (name == "last") (void)orrery::await_name<device>("/host/has/seen/it", patience);
}

orrery::address where_is(const std::string& name) {
  try {
    return orrery::lookup<device>(name).address();
  } catch (const orrery::name_not_found&) {
    return {};
  }
}

// Publishes, destroys and takes names back until a name comes up, and asks these PEs in turn after each step. The number
// of wrong answers.
int publish_and_clear_until(std::vector<std::uint32_t> pes, std::string end) {
  int wrong = 0;
  for (std::uint32_t n = 0; !where_is(end); ++n) {
    const std::string name = fmt::format("/storm/{}/{}", orrery::this_pe(), n % 7);
    const auto ask = orrery::pe(pes[n % pes.size()]);
    const auto p = orrery::spawn<device>(orrery::pe(pes[n / 3 % pes.size()]), 0);
    publish(name, p);
    if (orrery::call<&where_is>(ask, name) != p.address()) ++wrong;
    if (n % 2 == 0) {
      destroy(p);
    } else {
      if (!orrery::unpublish(name)) ++wrong;
      destroy(p);
    }
    if (orrery::call<&where_is>(ask, name)) ++wrong;
  }
  return wrong;
}

// The node with PE 2 is killed, and guests come and go, while the others change names.
void storm() {
  publish_devices();
  publish("/host", orrery::spawn<device>(orrery::here(), 0));
  const int pid = orrery::call<&own_pid>(orrery::pe(2));
  const std::vector<std::uint32_t> pes{0, 1};
  std::vector<orrery::future<int>> workers;
  for (const auto pe : pes)
    for (int i = 0; i < 1; ++i)
      workers.push_back(orrery::start_call<&publish_and_clear_until>(orrery::pe(pe), pes, std::string("/guest/last")));
  fmt::print(stderr, "up\n");
  orrery::sleep_for(std::chrono::milliseconds(100));  // guests have begun to come
  ::kill(pid, SIGKILL);
  for (auto& w : workers) check(w.get() == 0, "a wrong answer");
  let_the_last_guest_leave();
}

// Waits for names as a guest that does not hear any more when they come, and is killed then.
std::string late_name(int n) { return fmt::format("/late/{}", n); }
constexpr int late_names = 8;  // some of them are kept by the host
void await_late(int n) { (void)orrery::await_name<device>(late_name(n), patience); }
void deaf_guest() {
  std::vector<orrery::future<void>> waiting;
  for (int n = 0; n < late_names; ++n) waiting.push_back(orrery::start_call<&await_late>(orrery::here(), n));
  publish("/guest", orrery::spawn<device>(orrery::here(), 0));
  orrery::sleep_for(std::chrono::milliseconds(50));
  for (;;) ::sleep(1);
}
void publish_late(int n) {
  try {
    publish(late_name(n), orrery::spawn<device>(orrery::here(), n));
  } catch (const orrery::node_lost&) {  // the guest was to keep the name
  }
}
void host_of_deaf_guest() {
  publish("/host", orrery::spawn<device>(orrery::here(), 0));
  fmt::print(stderr, "up\n");
  const auto guest = orrery::await_name<device>("/guest", patience);
  orrery::sleep_for(std::chrono::milliseconds(100));
  std::vector<orrery::future<void>> publishing;
  for (int n = 0; n < late_names; ++n) publishing.push_back(orrery::start_call<&publish_late>(orrery::here(), n));
  orrery::sleep_for(std::chrono::milliseconds(50));
  fmt::print(stderr, "published\n");
  try {
    for (;;) (void)guest->get();
  } catch (const orrery::error&) {
  }
  for (auto& p : publishing) p.get();
}

// --- the tests ---------------------------------------------------------------------------------------

TEST(names_of_nodes, every_pe_finds_the_names_of_all_others) {
  EXPECT_EQ(outcome_of({"--scenario=all", "--orrery-nodes=3", "--orrery-pes=2"}), "good");
}
TEST(names_of_nodes, are_found_by_pes_of_one_node) {
  EXPECT_EQ(outcome_of({"--scenario=all", "--orrery-pes=4"}), "good");
}
TEST(names_of_nodes, are_checked_for_their_class_from_other_nodes) {
  EXPECT_EQ(outcome_of({"--scenario=classes", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}
TEST(names_of_nodes, end_with_their_process) {
  EXPECT_EQ(outcome_of({"--scenario=end", "--orrery-nodes=3", "--orrery-pes=1"}), "good");
}
TEST(names_of_nodes, a_killed_node_takes_only_its_own_names) {
  const std::string said = outcome_of({"--scenario=kill", "--orrery-nodes=4", "--orrery-pes=2"});
  EXPECT_TRUE(said.ends_with("good")) << said;  // and a line about the killed node
}
TEST(names_of_nodes, a_node_is_killed_while_names_come_and_go) {
  const std::string said = outcome_of({"--scenario=churn", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}

TEST(names_of_nodes, a_program_that_joins_finds_them_at_once) {
  program first({"--scenario=first", own_world(), "--orrery-pes=1"});
  first.hear("up");
  EXPECT_EQ(outcome_of({"--scenario=second", own_world(), "--orrery-pes=2"}), "good");
  EXPECT_EQ(first.end(), "good");
}
constexpr int guest_pairs = 3;
// Guests come two at a time and leave again, then a last one. What is wrong with them.
std::string have_guests() {
  std::string wrong;
  const auto note = [&](const std::string& said) {
    if (said != "good") wrong += said + '\n';
  };
  for (int i = 0; i < guest_pairs; ++i) {
    const auto name = [i](int j) { return fmt::format("--scenario=guest.{}.{}", i, j); };
    program one({name(1), own_world(), "--orrery-pes=2"});
    program two({name(2), own_world(), "--orrery-pes=1"});
    note(one.end());
    note(two.end());
  }
  note(outcome_of({"--scenario=guest.last", own_world(), "--orrery-pes=1"}));
  return wrong;
}

TEST(names_of_nodes, are_never_lost_while_programs_join_and_leave) {
  program host({"--scenario=host", own_world(), "--orrery-pes=1"});
  host.hear("up");
  EXPECT_EQ(have_guests(), "");
  EXPECT_EQ(host.end(), "good");
}
TEST(names_of_nodes, of_which_a_lost_node_did_not_hear_are_no_lost_messages) {
  program host({"--scenario=host_of_deaf_guest", own_world(), "--orrery-pes=1"});
  host.hear("up");
  program guest({"--scenario=deaf_guest", own_world(), "--orrery-pes=1"});
  host.hear("published");
  ::kill(guest.pid(), SIGKILL);
  (void)guest.end();
  const std::string said = host.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(said.find("one-way"), std::string::npos) << said;
}
TEST(names_of_nodes, are_right_at_once_while_nodes_join_leave_and_are_killed) {
  program host({"--scenario=storm", own_world(), "--orrery-nodes=3", "--orrery-pes=1"});
  host.hear("up");
  (void)have_guests();  // they may say that a node was killed
  const std::string said = host.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
}

}  // namespace

int main(int argc, char** argv) {
  scenarios all{{"all", every_pe_finds_all},
                {"classes", classes_are_checked},
                {"end", names_end_with_their_process},
                {"kill", a_killed_node_takes_only_its_own_names},
                {"churn", a_node_is_killed_while_names_come_and_go},
                {"first", the_first_of_a_named_world},
                {"second", the_second_of_a_named_world},
                {"host", host},
                {"storm", storm},
                {"deaf_guest", deaf_guest},
                {"host_of_deaf_guest", host_of_deaf_guest}};
  std::vector<std::string> guests{"last"};
  for (int i = 0; i < guest_pairs; ++i)
    for (const int j : {1, 2}) guests.push_back(fmt::format("{}.{}", i, j));
  std::vector<std::string> names;
  for (const std::string& g : guests) names.push_back("guest." + g);
  for (std::size_t i = 0; i < names.size(); ++i) all[names[i]] = [&, i] { guest(guests[i]); };
  return run_tests_or_scenario(argc, argv, all);
}
