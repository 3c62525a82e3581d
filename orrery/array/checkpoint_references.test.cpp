// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/checkpoint.hpp>
#include <orrery/array/section.hpp>
#include <orrery/orrery.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// The names in the states of a checkpoint.
namespace orrery {
namespace checkpoint_references_tests {

namespace fs = std::filesystem;
using testing::in_world;

struct Store;
ORRERY_PROCESS(Store, kind, set_number, number, twin);
struct Store {
  virtual ~Store() = default;
  virtual std::string kind() const { return "store"; }
  void set_number(int n) { n_ = n; }
  int number() const { return n_; }
  remote<Store> twin() const { return twin_; }
  template <class A>
  void serialize(A& a) {
    a & n_ & twin_;
  }
  int n_ = 0;
  remote<Store> twin_;
};
struct Disk : Store {
  std::string kind() const override { return "disk"; }
  void set_twin(remote<Store> t) { twin_ = t; }
  template <class A>
  void serialize(A& a) {
    Store::serialize(a);
  }
};
ORRERY_PROCESS(Disk, set_twin);

struct Cell;
struct Solver;
ORRERY_PROCESS(Solver, set_number, number, my_rank, know, all, next, sees, sees_cells, meet);
ORRERY_PROCESS(Cell, know, solvers, third, store, neighbours, grid, null_ones, same_handles, work);

using solver_group = group<Solver>;  // a member and an element have functions of these names
using cell_array = array<Cell>;
using cell_section = section<Cell>;

struct Solver : member<Solver> {
  void set_number(int n) { n_ = n; }
  int number() const { return n_; }
  std::size_t my_rank() const { return rank(); }
  void know(solver_group g, cell_array cells) {
    all_ = g;
    next_ = g[(rank() + 1) % size()];
    cells_ = cells;
    cell_ = cells[static_cast<int>(rank())];
  }
  solver_group all() const { return all_; }
  remote<Solver> next() const { return next_; }
  bool sees(solver_group g) const { return all_ == g && this_group() == g && next_ == g[(rank() + 1) % g.size()]; }
  bool sees_cells(cell_array cells) const { return cells_ == cells && cell_ == cells[static_cast<int>(rank())]; }
  int meet() { return all_reduce(n_); }
  template <class A>
  void serialize(A& a) {
    a & n_ & all_ & next_ & cells_ & cell_;
  }
  int n_ = 0;
  solver_group all_;
  remote<Solver> next_;
  cell_array cells_;
  element_ptr<Cell> cell_;
};

struct Cell : element<Cell> {
  void know(solver_group g, remote<Disk> d, remote<Store> lost, remote<Store> lost_too, solver_group other,
            remote<double[]> data, cell_section part) {
    groups_["solvers"] = {g, g};
    third_ = std::make_unique<remote<Solver>>(g[2]);
    store_ = d;
    near_ = {this_array()[this_index() + 1], this_array()[this_index() - 1]};
    lost_ = {lost, lost_too};
    other_ = other;
    data_ = data;
    part_ = part;
  }
  solver_group solvers(int k) const { return groups_.at("solvers").at(static_cast<std::size_t>(k)); }
  remote<Solver> third() const { return *third_; }
  remote<Store> store() const { return *store_; }
  std::vector<element_ptr<Cell>> neighbours() const { return near_; }
  cell_array grid() const { return near_.empty() ? cell_array() : cell_array(near_[0].name().array); }
  bool null_ones() const {
    return lost_ == std::set<remote<Store>>{{}} && other_ == solver_group() && !data_ && !part_;
  }
  // All copies of a group in a node share one list of members.
  bool same_handles() const {
    const auto* d = &detail::group_access::handle(groups_.at("solvers")[0]).data();
    return d == &detail::group_access::handle(groups_.at("solvers")[1]).data();
  }
  int work() { return (*store_)->number() + (*third_)->number() + static_cast<int>(groups_["solvers"][0].size()); }
  template <class A>
  void serialize(A& a) {
    a & groups_ & third_ & store_ & near_ & lost_ & other_ & data_ & part_;
  }
  std::map<std::string, std::vector<solver_group>> groups_;
  std::unique_ptr<remote<Solver>> third_;
  std::optional<remote<Store>> store_;
  std::vector<element_ptr<Cell>> near_;
  std::set<remote<Store>> lost_;
  solver_group other_;
  remote<double[]> data_;
  cell_section part_;
};

constexpr int cells = 20;
constexpr std::size_t solvers = 7;

class checkpoint_references : public ::testing::Test {
 protected:
  checkpoint_references() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~checkpoint_references() override { fs::remove_all(path_); }
  [[nodiscard]] std::string folder() const { return path_ + "/saved"; }

  void save(std::uint32_t pes) const {
    in_world(pes, [&] {
      const auto c = create_array<Cell>(range<int>{cells}, {.name = "cells"});
      const auto g = spawn_group<Solver>(in_blocks(), solvers);
      const auto other = spawn_group<Solver>(everywhere(), 3);
      const auto d = spawn<Disk>(pe(pes - 1));
      const auto twin = spawn<Disk>(pe(0));
      const auto lost = spawn<Store>(pe(0));
      const auto lost_too = spawn<Store>(pe(pes - 1));
      const auto data = spawn<double[]>(pe(0), 8);
      const auto part = create_section(c, {1, 3});
      for (std::size_t k = 0; k < solvers; ++k) g[k]->set_number(static_cast<int>(10 * k));
      g->know(g, c);
      d->set_number(1000);
      d->set_twin(twin);
      twin->set_number(2000);
      twin->set_twin(d);
      for (int k = 0; k < cells; ++k) {
        c[k]->know(g, d, lost, lost_too, other, data, part);
        if (k % 3 == 0) post_migrate(c[k], static_cast<std::uint32_t>(k) % pes);
      }
      quiescence();
      checkpoint(folder(), d, c, g, twin);
    });
  }

 private:
  std::string path_ = "/tmp/orrery-checkpoint-XXXXXX";
};

using items = std::tuple<remote<Disk>, array<Cell>, group<Solver>, remote<Disk>>;
items come_back(const std::string& folder) {
  return restore<remote<Disk>, array<Cell>, group<Solver>, remote<Disk>>(folder);
}

TEST_F(checkpoint_references, name_what_was_restored) {
  save(3);
  for (const std::uint32_t pes : {1U, 2U, 5U})
    in_world(pes, [&] {
      (void)spawn<Store>(here());  // so that addresses are others
      (void)create_array<Cell>();
      const auto [d, c, g, twin] = come_back(folder());
      ASSERT_EQ(g.size(), solvers);
      for (int k = 0; k < cells; ++k) {
        EXPECT_EQ(c[k]->solvers(0), g);
        EXPECT_EQ(c[k]->solvers(1), g);
        EXPECT_TRUE(c[k]->same_handles());
        EXPECT_EQ(c[k]->third(), g[2]);
        EXPECT_EQ(c[k]->store(), d);
        EXPECT_EQ(c[k]->neighbours(), (std::vector{c[k + 1], c[k - 1]}));
        EXPECT_EQ(c[k]->grid(), c);
        EXPECT_EQ(c[k]->work(), 1000 + 20 + 7);
      }
      for (std::size_t k = 0; k < solvers; ++k) {
        EXPECT_EQ(g[k]->number(), static_cast<int>(10 * k));
        EXPECT_EQ(g[k]->my_rank(), k);
        EXPECT_EQ(g[k]->next(), g[(k + 1) % solvers]);
      }
      for (const bool b : g->sees(g)) EXPECT_TRUE(b);
      for (const bool b : g->sees_cells(c)) EXPECT_TRUE(b);
      // The group that a member holds is one that can be called.
      EXPECT_EQ(g[1]->all()->meet(), std::vector<int>(solvers, 210));
      EXPECT_EQ(d->twin(), remote<Store>(twin));
      EXPECT_EQ(twin->twin()->kind(), "disk");
      EXPECT_EQ(twin->twin()->number(), 1000);
      EXPECT_EQ(d->twin()->number(), 2000);
    });
}

TEST_F(checkpoint_references, to_what_is_not_in_the_checkpoint_are_null) {
  save(2);
  in_world(2, [&] {
    const auto [d, c, g, twin] = come_back(folder());
    for (int k = 0; k < cells; ++k) EXPECT_TRUE(c[k]->null_ones());
  });
}

TEST_F(checkpoint_references, to_an_array_that_is_not_in_the_checkpoint_are_null) {
  in_world(2, [&] {
    const auto c = create_array<Cell>(range<int>{4});
    const auto g = spawn_group<Solver>(everywhere(), 4);
    g->know(g, c);
    checkpoint(folder(), g);
    const auto [again] = restore<group<Solver>>(folder());
    for (const bool b : again->sees(again)) EXPECT_TRUE(b);
    EXPECT_NE(again, g);
    for (const bool b : again->sees_cells(c)) EXPECT_FALSE(b);
    for (const bool b : g->sees_cells(c)) EXPECT_TRUE(b);  // messages are read as ever
  });
}

TEST_F(checkpoint_references, can_be_written_and_restored_again) {
  save(2);
  in_world(3, [&] {
    const auto [d, c, g, twin] = come_back(folder());
    checkpoint(folder() + "2", d, c, g, twin);
  });
  in_world(1, [&] {
    const auto [d, c, g, twin] = come_back(folder() + "2");
    for (int k = 0; k < cells; ++k) EXPECT_EQ(c[k]->work(), 1027);
    for (const bool b : g->sees(g)) EXPECT_TRUE(b);
  });
}

}  // namespace checkpoint_references_tests
}  // namespace orrery
