#include "data.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "random.hpp"
#include "user_error.hpp"

namespace gpt2 {

namespace fs = std::filesystem;

namespace {

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw user_error("cannot read '" + path.string() + "': " + reason);
}

void list_folder(const fs::path& folder, std::vector<fs::path>& files) {
  for (fs::recursive_directory_iterator entry{folder}, end; entry != end; ++entry) {
    if (hidden(entry->path()))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file())
      files.push_back(entry->path());
  }
}

void list(const fs::path& path, std::vector<fs::path>& files) {
  auto const status = fs::status(path);
  if (fs::is_directory(status))
    list_folder(path, files);
  else if (fs::is_regular_file(status))
    files.push_back(path);
  else
    refuse(path, fs::exists(status) ? "it is neither a file nor a folder" : "it does not exist");
}

std::vector<fs::path> list(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  try {
    for (auto const& path : paths) list(path, files);
    std::sort(files.begin(), files.end());
    std::set<fs::path> seen;
    std::erase_if(files,
                  [&](const fs::path& file) { return !seen.insert(fs::canonical(file)).second; });
  } catch (const fs::filesystem_error& failed) {
    refuse(failed.path1(), failed.code().message());
  }
  return files;
}

std::vector<std::uint8_t> read(const fs::path& file) {
  errno = 0;
  std::ifstream in{file, std::ios::binary};
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>{in}, {}};
  if (!in.is_open() || in.bad()) refuse(file, std::strerror(errno));
  return bytes;
}

// Looks at every token, so that nothing later has to.
void need_tokens(const fs::path& file, const token_text& text, const token_format& format) {
  for (index i = 0; i < text.size(); ++i)
    if (text[i] >= format.vocabulary)
      throw user_error("'" + file.string() + "': the token at byte " +
                       std::to_string(i * format.bytes_each()) + " is " + std::to_string(text[i]) +
                       ", and the vocabulary has " + std::to_string(format.vocabulary));
}

token_text read(const fs::path& file, const token_format& format) {
  auto bytes = read(file);
  if (std::ssize(bytes) % format.bytes_each() != 0)
    throw user_error("'" + file.string() + "' has " + std::to_string(bytes.size()) +
                     " bytes, which are no numbers of 16 bits");
  token_text text{format, std::move(bytes)};
  need_tokens(file, text, format);
  return text;
}

void need_window(const token_text& part, const char* name, const token_format& format, index seq) {
  if (part.size() <= seq)
    throw user_error("the data are too short: " + std::string{name} + " has " +
                     std::to_string(part.size()) + " " + std::string{format.unit()} +
                     ", and --seq " + std::to_string(seq) + " needs " + std::to_string(seq + 1));
}

void resize(batch& b, extent shape) {
  b.shape = shape;
  b.inputs.resize(static_cast<std::size_t>(shape.rows()));
  b.targets.resize(static_cast<std::size_t>(shape.rows()));
}

void cut(const token_text& text, index start, index row, batch& to) {
  auto const place = static_cast<std::size_t>(row * to.shape.seq);
  for (index i = 0; i < to.shape.seq; ++i) {
    to.inputs[place + static_cast<std::size_t>(i)] = text[start + i];
    to.targets[place + static_cast<std::size_t>(i)] = text[start + i + 1];
  }
}

// The number of places where a window may start.
index starts(const token_text& text, index seq) {
  return text.size() - seq;
}

}  // namespace

corpus load(const std::vector<fs::path>& paths, const token_format& format, index seq) {
  corpus all{.files = list(paths), .train = token_text{format}, .validation = token_text{format}};
  if (all.files.empty())
    throw user_error("there is no file to train on in '" + paths.front().string() + "'");
  for (auto const& file : all.files) {
    auto const text = read(file, format);
    auto const held_out = text.size() - text.size() / 10;
    all.train.append(text, 0, held_out);
    all.validation.append(text, held_out, text.size());
  }
  need_window(all.train, "the training part", format, seq);
  need_window(all.validation, "the held-out tenth", format, seq);
  return all;
}

std::vector<fs::path> default_data() {
  fs::path const licences = "/usr/share/common-licenses";
  if (fs::is_directory(licences)) return {licences};
  std::vector<fs::path> sources;
  for (auto const* part : {"include", "examples", "tests", "bench"})
    if (fs::path const folder = fs::path{GPT2_PROJECT} / part; fs::is_directory(folder))
      sources.push_back(folder);
  if (!sources.empty()) return sources;
  throw user_error(
      "there are no licence texts on this machine to train on; name files or folders with --data");
}

void draw(const token_text& text, extent shape, index seed, index step, batch& to) {
  resize(to, shape);
  random_source random{seed, step};
  for (index row = 0; row < shape.batch; ++row) {
    auto const start = random.uniform() * static_cast<double>(starts(text, shape.seq));
    cut(text, static_cast<index>(start), row, to);
  }
}

std::vector<batch> cover(const token_text& text, extent shape, index limit) {
  index const last_start = starts(text, shape.seq) - 1;
  index const fitting = last_start / shape.seq + 1;
  index const windows = std::clamp<index>(limit / shape.seq, 1, fitting);
  std::vector<batch> batches;
  for (index window = 0; window < windows; ++window) {
    index const row = window % shape.batch;
    if (row == 0)
      resize(batches.emplace_back(), {std::min(shape.batch, windows - window), shape.seq});
    index const start = windows == 1 ? 0 : last_start * window / (windows - 1);
    cut(text, start, row, batches.back());
  }
  return batches;
}

}  // namespace gpt2
