#include <memfit/memfit.cuh>

#include "grouped_optimizer.hpp"

namespace gpt2 {

template std::unique_ptr<optimizer> make_grouped(const memfit::cuda&, const memfit::momentum&,
                                                 state_choice, weights<float>&);

}  // namespace gpt2
