// SPDX-License-Identifier: Apache-2.0
#pragma once

// clang-format off
// ORRERY_FOR_EACH(macro, a, b, ...) is macro(a) macro(b) ..., for up to 64 arguments. Numbered
// rather than recursive: a misspelt method name is then one error at the user's line, not a tower
// of expansions.

#define ORRERY_EACH_0(M)
#define ORRERY_EACH_1(M, a1) \
  M(a1)
#define ORRERY_EACH_2(M, a1, a2) \
  M(a1) M(a2)
#define ORRERY_EACH_3(M, a1, a2, a3) \
  M(a1) M(a2) M(a3)
#define ORRERY_EACH_4(M, a1, a2, a3, a4) \
  M(a1) M(a2) M(a3) M(a4)
#define ORRERY_EACH_5(M, a1, a2, a3, a4, a5) \
  M(a1) M(a2) M(a3) M(a4) M(a5)
#define ORRERY_EACH_6(M, a1, a2, a3, a4, a5, a6) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6)
#define ORRERY_EACH_7(M, a1, a2, a3, a4, a5, a6, a7) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7)
#define ORRERY_EACH_8(M, a1, a2, a3, a4, a5, a6, a7, a8) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8)
#define ORRERY_EACH_9(M, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9)
#define ORRERY_EACH_10(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10)
#define ORRERY_EACH_11(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11)
#define ORRERY_EACH_12(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12)
#define ORRERY_EACH_13(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13)
#define ORRERY_EACH_14(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14)
#define ORRERY_EACH_15(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15)
#define ORRERY_EACH_16(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16)
#define ORRERY_EACH_17(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17)
#define ORRERY_EACH_18(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18)
#define ORRERY_EACH_19(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19)
#define ORRERY_EACH_20(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20)
#define ORRERY_EACH_21(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21)
#define ORRERY_EACH_22(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22)
#define ORRERY_EACH_23(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23)
#define ORRERY_EACH_24(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24)
#define ORRERY_EACH_25(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25)
#define ORRERY_EACH_26(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26)
#define ORRERY_EACH_27(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27)
#define ORRERY_EACH_28(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28)
#define ORRERY_EACH_29(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29)
#define ORRERY_EACH_30(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30)
#define ORRERY_EACH_31(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31)
#define ORRERY_EACH_32(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32)
#define ORRERY_EACH_33(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33)
#define ORRERY_EACH_34(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34)
#define ORRERY_EACH_35(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35)
#define ORRERY_EACH_36(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36)
#define ORRERY_EACH_37(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37)
#define ORRERY_EACH_38(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38)
#define ORRERY_EACH_39(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39)
#define ORRERY_EACH_40(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40)
#define ORRERY_EACH_41(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41)
#define ORRERY_EACH_42(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42)
#define ORRERY_EACH_43(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43)
#define ORRERY_EACH_44(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44)
#define ORRERY_EACH_45(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45)
#define ORRERY_EACH_46(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46)
#define ORRERY_EACH_47(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47)
#define ORRERY_EACH_48(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48)
#define ORRERY_EACH_49(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49)
#define ORRERY_EACH_50(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50)
#define ORRERY_EACH_51(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51)
#define ORRERY_EACH_52(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52)
#define ORRERY_EACH_53(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53)
#define ORRERY_EACH_54(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54)
#define ORRERY_EACH_55(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55)
#define ORRERY_EACH_56(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56)
#define ORRERY_EACH_57(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57)
#define ORRERY_EACH_58(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58)
#define ORRERY_EACH_59(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58) M(a59)
#define ORRERY_EACH_60(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58) M(a59) M(a60)
#define ORRERY_EACH_61(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58) M(a59) M(a60) M(a61)
#define ORRERY_EACH_62(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58) M(a59) M(a60) M(a61) M(a62)
#define ORRERY_EACH_63(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58) M(a59) M(a60) M(a61) M(a62) M(a63)
#define ORRERY_EACH_64(M, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64) \
  M(a1) M(a2) M(a3) M(a4) M(a5) M(a6) M(a7) M(a8) M(a9) M(a10) M(a11) M(a12) M(a13) M(a14) M(a15) M(a16) M(a17) M(a18) M(a19) M(a20) M(a21) M(a22) M(a23) M(a24) M(a25) M(a26) M(a27) M(a28) M(a29) M(a30) M(a31) M(a32) M(a33) M(a34) M(a35) M(a36) M(a37) M(a38) M(a39) M(a40) M(a41) M(a42) M(a43) M(a44) M(a45) M(a46) M(a47) M(a48) M(a49) M(a50) M(a51) M(a52) M(a53) M(a54) M(a55) M(a56) M(a57) M(a58) M(a59) M(a60) M(a61) M(a62) M(a63) M(a64)
#define ORRERY_COUNT_(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64, n, ...) n
#define ORRERY_COUNT(...) \
  ORRERY_COUNT_(0 __VA_OPT__(, ) __VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ORRERY_PASTE_(a, b) a##b
#define ORRERY_PASTE(a, b) ORRERY_PASTE_(a, b)
#define ORRERY_FOR_EACH(M, ...) ORRERY_PASTE(ORRERY_EACH_, ORRERY_COUNT(__VA_ARGS__))(M __VA_OPT__(, ) __VA_ARGS__)
// clang-format on
