// The exceptions that memfit throws.
// Used by every function that checks what a caller handed in; users catch memfit::error.
#pragma once

#include <stdexcept>
#include <string>

namespace memfit {

/// Base of everything memfit throws. Whoever catches it finds all arguments as they were.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Tensors that do not fit together: counts, null data, overlap, names.
class argument_error : public error {
 public:
  using error::error;
};

/// A hyper-parameter outside its range, or not finite.
class hyperparameter_error : public error {
 public:
  using error::error;
};

/// Memory could not be had.
class memory_error : public error {
 public:
  using error::error;
};

/// A device refused a call; the message has the call and the name of the error.
class device_error : public error {
 public:
  using error::error;
};

/// A call out of order: gradients unscaled twice, a scale updated before the step, a gate of an
/// earlier window.
class order_error : public error {
 public:
  using error::error;
};

/// A file that cannot be read or written, or that does not hold what the call needs.
class file_error : public error {
 public:
  using error::error;
};

}  // namespace memfit
