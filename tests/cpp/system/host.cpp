#include "system/host.h"

#include "check.h"

#if defined(__linux__)
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace specllama;

namespace {

// A folder with the limits of a container.
class Cgroup {
 public:
    Cgroup()
        : path_(std::filesystem::temp_directory_path() /
                ("specllama-test-cgroup-" + std::to_string(getpid()))) {
        std::filesystem::create_directory(path_);
    }
    ~Cgroup() { std::filesystem::remove_all(path_); }

    void set(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name) << text << '\n';
    }
    std::string path() const { return path_.string(); }

 private:
    std::filesystem::path path_;
};

}  // namespace

TEST(the_free_memory_of_a_container_is_its_limit_minus_its_use) {
    const Cgroup cgroup;
    const std::uint64_t machine = memory_available(cgroup.path());
    CHECK(machine > 0);
    cgroup.set("memory.max", "3000000");
    cgroup.set("memory.current", "1000000");
    CHECK(memory_available(cgroup.path()) == 2000000);
    cgroup.set("memory.stat", "anon 400000\ninactive_file 600000\nfile 600000");
    CHECK(memory_available(cgroup.path()) == 2600000);
    cgroup.set("memory.current", "5000000");
    CHECK(memory_available(cgroup.path()) == 0);
    // The machine's memory is the upper limit.
    cgroup.set("memory.max", "9000000000000000000");
    CHECK(memory_available(cgroup.path()) < 8000000000000000000);
    cgroup.set("memory.max", "max");
    CHECK(memory_available(cgroup.path()) > 5000000);
}
#endif
