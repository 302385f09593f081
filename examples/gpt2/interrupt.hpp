// Ctrl-C as a request: the first one asks the run to end after its step, a second one ends it at
// once. Used by main, which asks for it, and the trainer, which looks.
#pragma once

namespace gpt2 {

void catch_interrupts();
bool interrupted();

}  // namespace gpt2
