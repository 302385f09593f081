#include "cuda/table.cuh"
#include "memfit/codec/small_float.hpp"

MEMFIT_TEST_TABLE_OF(float8, memfit::float8)
