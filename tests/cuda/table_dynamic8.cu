#include "cuda/table.cuh"
#include "memfit/codec/dynamic.hpp"

MEMFIT_TEST_TABLE_OF(dynamic8, memfit::dynamic8)
