#include <memfit/memfit.hpp>

#include "grouped_optimizer.hpp"

namespace gpt2 {

template std::unique_ptr<optimizer> make_grouped(const memfit::host&, const memfit::adamw&,
                                                 state_choice, weights<float>&);

}  // namespace gpt2
