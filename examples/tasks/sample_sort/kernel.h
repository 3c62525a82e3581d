// SPDX-License-Identifier: Apache-2.0
// The steps of a sample sort, which know nothing of tasks: bench/task has them on plain threads,
// too.
#pragma once

#include <stdbool.h>

enum { SAMPLES = 1024 };  // of each bucket
enum sorting { QUICK, RADIX };  // the standard library's qsort, or a radix sort

// Takes at most SAMPLES numbers, at equal distances; returns how many.
int take_samples(const int* numbers, long count, int* samples);
// Writes buckets - 1 splitters. The samples are sorted.
void choose_splitters(int* samples, int count, int buckets, int* splitters);
// How many numbers belong to each bucket.
void count_parts(const int* numbers, long count, const int* splitters, int buckets, long* counts);
// Writes each number to the part of its bucket, whose pointer is moved on.
void fill_parts(const int* numbers, long count, const int* splitters, int buckets, int** parts);
void sort_numbers(int* numbers, long count, enum sorting how);
// True if the numbers are in order and not below *last, which becomes the greatest; they are
// counted and added up.
bool check_order(const int* numbers, long count, int* last, long* all, long long* sum);
