// Whether this build is too slow for whole sweeps: sanitizers, or no optimization.
// Used by the tests that sweep millions of values or hundreds of tensors; all others run in full.
#pragma once

namespace test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMFIT_TEST_SLOW_BUILD
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define MEMFIT_TEST_SLOW_BUILD
#endif

#if defined(MEMFIT_TEST_SLOW_BUILD)
inline constexpr bool slow_build = true;
#else
inline constexpr bool slow_build = false;
#endif
#undef MEMFIT_TEST_SLOW_BUILD

}  // namespace test
