// Files of a test's own: a folder that goes away, whole contents, and tensor files made by hand.
// Used by the tests of tensor files and of states in them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace test {

/// A folder that exists as long as this does.
class folder {
 public:
  folder() {
    auto const* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("memfit.") + test->test_suite_name() + "." + test->name();
    for (char& c : name)
      if (c == '/') c = '.';
    path_ = std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::filesystem::path path_;
};

inline std::string content(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
/// A new file: some file systems wait for the disk where one is rewritten.
inline void write(std::string const& path, std::string_view content) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// A tensor file of this header, which is not padded, and these bytes of data.
inline std::string tensor_file(std::string_view header, std::string_view data) {
  std::string all;
  for (unsigned i = 0; i < 8; ++i) all += static_cast<char>(header.size() >> 8 * i & 0xff);
  return all.append(header).append(data);
}

}  // namespace test
