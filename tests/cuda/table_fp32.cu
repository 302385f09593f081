#include "cuda/table.cuh"

MEMFIT_TEST_TABLE_OF(fp32, memfit::fp32)
