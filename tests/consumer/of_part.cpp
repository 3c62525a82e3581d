// SPDX-License-Identifier: Apache-2.0
int run_part(int argc, char** argv);

int main(int argc, char** argv) { return run_part(argc, argv); }
