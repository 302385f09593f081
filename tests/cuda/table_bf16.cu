#include "cuda/table.cuh"

MEMFIT_TEST_TABLE_OF(bf16, memfit::bf16)
