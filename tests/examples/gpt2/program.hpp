// Runs a program, gpt2_train or another example, as a person would, and gives it text to train on.
// Used by the tests of its command line and of whole runs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace program {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

inline std::string read(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

inline void write(const fs::path& path, const std::string& text) {
  std::ofstream{path, std::ios::binary} << text;
}

inline std::ptrdiff_t lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

struct result {
  int status = -1;
  std::string out, err;
};

// A folder of its own for every test, with a text file of 12,000 bytes.
class fixture : public testing::Test {
 protected:
  void SetUp() override {
    auto const* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string{test->test_suite_name()} + "." + test->name();
    std::replace(name.begin(), name.end(), '/', '.');
    folder = fs::path{testing::TempDir()} / ("memfit." + name);
    fs::remove_all(folder);
    fs::create_directories(folder);
    text = folder / "text.txt";
    log = folder / "log.jsonl";
    std::string content;
    for (int line = 0; content.size() < 12000; ++line)
      content += "line " + std::to_string(line * line % 1000) + " of the text to learn\n";
    write(text, content.substr(0, 12000));
  }

  void TearDown() override { fs::remove_all(folder); }

  // Starts the program; `while_running` may look at files and signal the process.
  result run(
      const words& arguments,
      const std::function<void(pid_t)>& while_running = [](pid_t) {}) const {
    fs::path const out = folder / "stdout";
    fs::path const err = folder / "stderr";
    result r = run_into(out, err, arguments, while_running);
    r.out = read(out);
    r.err = read(err);
    return r;
  }

  result run_into(const fs::path& out, const fs::path& err, const words& arguments,
                  const std::function<void(pid_t)>& while_running) const {
    words all{TESTED_PROGRAM};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t const child = fork();
    if (child == 0) {
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0600), STDOUT_FILENO);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      rlimit const seconds{60, 60};
      setrlimit(RLIMIT_CPU, &seconds);
      execv(argv[0], argv.data());
      _exit(127);
    }
    while_running(child);
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), {}, {}};
  }

  // Waits until `ready`, for at most a minute.
  static bool wait_until(const std::function<bool()>& ready) {
    for (int i = 0; i < 6000 && !ready(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    return ready();
  }

  fs::path folder, text, log;
};

// A network that trains in a moment.
inline words small_network(const fs::path& text) {
  return {"--layers",  "1",       "--heads", "2",    "--channels", "64",         "--context",
          "32",        "--batch", "4",       "--lr", "3e-3",       "--warmup",   "2",
          "--threads", "2",       "--seed",  "11",   "--data",     text.string()};
}

inline words operator+(words a, const words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace program
