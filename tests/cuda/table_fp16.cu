#include "cuda/table.cuh"

MEMFIT_TEST_TABLE_OF(fp16, memfit::fp16)
