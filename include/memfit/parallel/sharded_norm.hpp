// The global norm of gradients that ranks hold in parts: each element counts once.
// Used before clipping, where some tensors are sharded over ranks and others are on all of them.
#pragma once

#include <cstdint>
#include <utility>

#include "memfit/core/scalar.hpp"
#include "memfit/exec/machine.hpp"
#include "memfit/gradients.hpp"
#include "memfit/parallel/communicator.hpp"

namespace memfit {

namespace detail {

struct square_program {
  double const* norm;
  double* out;
  MEMFIT_HD void operator()() const { *out = product(*norm, *norm); }
};
struct join_program {
  double* square;  // becomes the norm
  double const* norm;
  MEMFIT_HD void operator()() const {
    *square = ops<double>::sqrt(*square + product(*norm, *norm));
  }
};

}  // namespace detail

/// The Euclidean norm over the elements of all ranks: the squares of sharded tensors, of which each
/// rank has a part, are summed over the ranks; those of replicated ones, the same on every rank,
/// count once. Padding is no element: the views that are given end before it. Every rank gets the
/// same bits. Ordered on the executor; waits for nothing if the communicator does not. Takes what
/// two global_norms take.
class sharded_norm {
 public:
  /// For tensors of the counts of these, in this order; either list may be empty. Throws as
  /// global_norm does.
  template <executor E, tensors Sharded, tensors Replicated>
  sharded_norm(E const& exec, Sharded&& sharded, Replicated&& replicated)
      : machine_(detail::new_machine<detail::square_program, detail::join_program>(exec)),
        sharded_(exec, sharded),
        replicated_(exec, replicated) {
    naming([&] { square_ = machine_->zeroed(sizeof(double)); });
  }

  /// Returns where the norm will be, in the executor's memory. All ranks call it.
  template <communicator C, tensors Sharded, tensors Replicated>
  double const* operator()(C& ranks, Sharded&& sharded, Replicated&& replicated) {
    auto* const out = static_cast<double*>(square_.data());
    auto const* const own = sharded_(sharded);
    auto const* const common = replicated_(replicated);
    naming([&] {
      machine_->run(detail::square_program{own, out});
      ranks.all_reduce_sum(out, 1);
      machine_->run(detail::join_program{out, common});
    });
    return out;
  }

  /// The last norm. Waits for the executor.
  double value_sync() const {
    double norm = 0;
    naming([&] { machine_->copy_to_host(&norm, square_.data(), sizeof norm); });
    return norm;
  }

 private:
  template <class Work>
  static void naming(Work const& work) {
    detail::naming("sharded_norm", "the norm", 1, 1, work);
  }

  owner<detail::machine<detail::square_program, detail::join_program>> machine_;
  buffer square_;
  global_norm sharded_, replicated_;
};

}  // namespace memfit
