// A linear model whose gradients are fp16, trained in micro-batches of unequal sizes, with a scaled
// loss and clipping.
#include <memfit/memfit.hpp>
#include <memfit/state_file.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

static constexpr std::size_t inputs = 5000;

struct sample {
  std::vector<float> x;
  float y;
};

// Half the mean squared error over some samples; its gradient times `scale`, in fp16.
static double backward(sample const* first, std::size_t count, std::vector<float> const& w,
                       float scale, std::vector<memfit::fp16>& gradient) {
  std::vector<float> sum(inputs);
  double loss = 0;
  for (std::size_t k = 0; k < count; ++k) {
    float away = -first[k].y;
    for (std::size_t i = 0; i < inputs; ++i) away += w[i] * first[k].x[i];
    for (std::size_t i = 0; i < inputs; ++i) sum[i] += away * first[k].x[i];
    loss += 0.5 * static_cast<double>(away) * static_cast<double>(away);
  }
  for (std::size_t i = 0; i < inputs; ++i)
    gradient[i] = memfit::fp16(sum[i] / static_cast<float>(count) * scale);
  return loss / static_cast<double>(count);
}

int main() {
  std::vector<sample> batch(7);
  for (std::size_t k = 0; k < batch.size(); ++k) {
    for (std::size_t i = 0; i < inputs; ++i)
      batch[k].x.push_back(std::sin(0.001f * static_cast<float>((k + 2) * (i + 1))));
    batch[k].y = 1.0f + static_cast<float>(k);
  }
  std::size_t const sizes[] = {3, 3, 1};
  std::vector<float> weights(inputs);
  std::vector<memfit::fp16> gradient(inputs);
  double const before = backward(batch.data(), batch.size(), weights, 1, gradient);

  memfit::host const exec{};
  memfit::tensor_ref<float> const parameters[] = {{weights.data(), {inputs}, "w"}};
  memfit::tensor_ref<memfit::fp16> const gradients[] = {{gradient.data(), {inputs}, "w"}};
  // example-begin window
  memfit::optimizer<memfit::adamw, memfit::float8> opt{exec, {.lr = 1e-3}, parameters};
  memfit::gradient_accumulator acc{exec, parameters};
  memfit::loss_scaler scaler{exec};
  for (int step = 0; step < 200; ++step) {
    sample const* micro = batch.data();
    for (auto const size : sizes) {
      backward(micro, size, weights, *scaler.scale(), gradient);  // yours
      acc.add(gradients, size);  // weighted: unequal micro-batches are right
      micro += size;
    }
    auto gate = scaler.unscale(acc);           // a multiplier, and a flag that skips
    gate = memfit::clip_norm(acc, gate, 1.0);  // folds into the multiplier
    opt.step(acc, gate);                       // one fused pass
    scaler.update(gate);                       // nothing above waited for the device
  }
  // example-end window
  // example-begin states
  memfit::save_state("run.safetensors", opt, acc, scaler);  // a file is whole, or is the old one
  memfit::load_state("run.safetensors", opt, acc, scaler);  // goes on bit for bit, or throws
  // example-end states
  std::remove("run.safetensors");
  double const after = backward(batch.data(), batch.size(), weights, 1, gradient);
  std::printf("loss %.3f -> %.6f, scale %.0f, %lld windows skipped\n", before, after,
              static_cast<double>(scaler.value_sync()),
              static_cast<long long>(scaler.skipped_sync()));
  return after < 0.01 * before && scaler.skipped_sync() > 0 ? 0 : 1;
}
