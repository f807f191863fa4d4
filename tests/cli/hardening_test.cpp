// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the hardening by compiler and linker (CMakeLists.txt) from the shipped binary.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace mw::test {
namespace {

class Binary {
 public:
  explicit Binary(const char* path) : bytes_(read_file(path)), header_(at<Elf64_Ehdr>(0)) {}

  bool position_independent() const { return header_.e_type == ET_DYN; }
  bool has_segment(Elf64_Word type) const { return !segments(type).empty(); }
  bool binds_at_start() const {
    for (const Elf64_Phdr& dynamic : segments(PT_DYNAMIC))
      for (Elf64_Off o = 0; o < dynamic.p_filesz; o += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(dynamic.p_offset + o);
        if ((entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_BIND_NOW) != 0) || entry.d_tag == DT_BIND_NOW ||
            (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NOW) != 0))
          return true;
      }
    return false;
  }
  bool has_writable_code() const {
    for (const Elf64_Word type : {PT_LOAD, PT_GNU_STACK})
      for (const Elf64_Phdr& s : segments(type))
        if ((s.p_flags & PF_X) != 0 && (s.p_flags & PF_W) != 0) return true;
    return false;
  }
  bool calls(const std::string& function) const {  // a library function, found by name in the string table
    return bytes_.find('\0' + function + '\0') != std::string::npos;
  }
  size_t count_code(std::string_view pattern) const {
    size_t found = 0;
    for (const Elf64_Phdr& s : segments(PT_LOAD)) {
      if ((s.p_flags & PF_X) == 0) continue;
      const std::string_view code = std::string_view(bytes_).substr(s.p_offset, s.p_filesz);
      for (size_t p = code.find(pattern); p != code.npos; p = code.find(pattern, p + pattern.size())) ++found;
    }
    return found;
  }

 private:
  template <class T>
  T at(Elf64_Off offset) const {
    T value{};
    if (offset + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::vector<Elf64_Phdr> segments(Elf64_Word type) const {
    std::vector<Elf64_Phdr> found;
    for (Elf64_Half i = 0; i < header_.e_phnum; ++i)
      if (const auto s = at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)); s.p_type == type) found.push_back(s);
    return found;
  }

  std::string bytes_;
  Elf64_Ehdr header_;
};

TEST(Hardening, BinaryIsHardened) {
  const Binary binary(MW_BINARY);
  EXPECT_TRUE(binary.position_independent());
  EXPECT_TRUE(binary.has_segment(PT_GNU_RELRO));
  EXPECT_TRUE(binary.binds_at_start());
  EXPECT_FALSE(binary.has_writable_code());
  EXPECT_TRUE(binary.calls("__stack_chk_fail"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(binary.calls("__memcpy_chk") || binary.calls("__read_chk") || binary.calls("__snprintf_chk") ||
              binary.calls("__fprintf_chk"));
#endif
#if defined(__x86_64__)
  EXPECT_GT(binary.count_code("\xf3\x0f\x1e\xfa"), 10000u);  // endbr64: -fcf-protection
  using namespace std::string_view_literals;
  EXPECT_GT(binary.count_code("\x48\x83\x0c\x24\x00"sv), 20u);  // orq $0, (%rsp): probes of -fstack-clash-protection
#endif
}

}  // namespace
}  // namespace mw::test
