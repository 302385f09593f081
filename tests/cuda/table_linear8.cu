#include "cuda/table.cuh"
#include "memfit/codec/linear.hpp"

MEMFIT_TEST_TABLE_OF(linear8, memfit::linear8)
