// SPDX-License-Identifier: Apache-2.0
#pragma once

// Jacobi relaxation of 2048 x 2048 cells by two threads: as an array of blocks (examples/arrays/jacobi), and as plain loops.
namespace bench {

/// Millions of cells a second with blocks of cells x cells, in a world of two PEs; -1 if what came out is wrong.
double jacobi_mcells(int cells, bool smoke);

/// The same by two threads, each with one half of the grid, that wait for each other after every step: the better of a loop with two grids and one
/// in place. Not to be called in a world, whose PEs would spin beside them.
double jacobi_plain_mcells(bool smoke);

}  // namespace bench
