#include "files/file_cache.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

#include "check.h"

using namespace specllama;

namespace {

namespace fs = std::filesystem;

// A folder that is deleted after the test.
class Folder {
 public:
    Folder()
        : path_(fs::temp_directory_path() / ("specllama-test-files-" + std::to_string(getpid()))) {}
    ~Folder() { fs::remove_all(path_); }

    fs::path path() const { return path_ / "deep"; }
    int n_files() const {
        return static_cast<int>(std::distance(fs::directory_iterator(path()), {}));
    }

 private:
    fs::path path_;
};

auto writing(std::size_t n_bytes) {
    return [n_bytes](const std::string& path) {
        std::ofstream(path, std::ios::binary) << std::string(n_bytes, 'x');
    };
}

// Adds a file that was last used so many minutes ago.
void add(const FileCache& cache, const std::string& name, std::size_t n_bytes, int minutes) {
    const fs::path path = cache.add(name, writing(n_bytes));
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
}

}  // namespace

TEST(a_file_is_found_after_it_was_added) {
    const Folder folder;
    const FileCache cache(folder.path(), 100);
    CHECK(cache.find("a.gguf").empty());
    const fs::path path = cache.add("a.gguf", writing(10));
    CHECK(cache.find("a.gguf") == path);
    CHECK(fs::file_size(path) == 10);
    cache.remove("a.gguf");
    CHECK(cache.find("a.gguf").empty());
}

TEST(the_least_recently_used_files_are_dropped) {
    const Folder folder;
    const FileCache cache(folder.path(), 100);
    add(cache, "a.gguf", 40, 30);
    add(cache, "b.gguf", 40, 20);
    cache.find("a.gguf");  // now b is the least recently used
    add(cache, "c.gguf", 40, 0);
    CHECK(!cache.find("a.gguf").empty());
    CHECK(cache.find("b.gguf").empty());
    CHECK(!cache.find("c.gguf").empty());
}

TEST(a_file_larger_than_the_limit_replaces_all_others) {
    const Folder folder;
    const FileCache cache(folder.path(), 100);
    add(cache, "a.gguf", 40, 30);
    add(cache, "b.gguf", 400, 0);
    CHECK(folder.n_files() == 1);
    CHECK(!cache.find("b.gguf").empty());
}

TEST(a_file_that_cannot_be_written_leaves_nothing) {
    const Folder folder;
    const FileCache cache(folder.path(), 100);
    add(cache, "a.gguf", 40, 30);
    CHECK((tests::throws<std::runtime_error>([&] {
        cache.add("b.gguf", [](const std::string& path) {
            writing(10)(path);
            throw std::runtime_error("interrupted");
        });
    })));
    CHECK(folder.n_files() == 1);
    CHECK(cache.find("b.gguf").empty());
}

TEST(unfinished_files_of_killed_processes_are_removed_later) {
    const Folder folder;
    const FileCache cache(folder.path(), 100);
    add(cache, "a.gguf", 40, 0);
    const fs::path left = folder.path() / "b.gguf.Ab12Cd";
    writing(10)(left.string());
    add(cache, "c.gguf", 40, 0);
    CHECK(fs::exists(left));  // a process may still write it
    fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
    add(cache, "d.gguf", 10, 0);
    CHECK(!fs::exists(left));
}

TEST(adding_to_an_unwritable_folder_throws) {
    const Folder folder;
    fs::create_directories(folder.path());
    writing(1)((folder.path() / "file").string());
    const FileCache cache(folder.path() / "file" / "drafts", 100);
    CHECK(!cache.writable());
    CHECK((tests::throws<std::system_error>([&] { cache.add("a.gguf", writing(1)); })));
}
